"""A controller that sees nothing, or nothing true, or dies: the configuration stays, and somebody is told."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

import penstock
from penstock.control.control import Control
from penstock.control.control_plan import ControlPlan
from penstock.faults.alarms import alarms
from penstock.faults.bed import SINK, SOURCE, TASK, Bed
from penstock.faults.row import Outcome, Row
from penstock.faults.rows_load import AT_ONCE
from penstock.faults.tasks import Slow
from penstock.spark.job import Job
from penstock.stats.snapshot import Snapshot

SECONDS: Final = 6.0
Spoil = Callable[[Snapshot], Snapshot]


class Spoiled:
    """The handle of a flow whose measurements are not what was measured."""

    def __init__(self, job: Job, spoil: Spoil) -> None:
        self._job = job
        self._spoil = spoil

    def snapshot(self, interval_s: float) -> Snapshot:
        return self._spoil(self._job.snapshot(interval_s))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)


def missing(snapshot: Snapshot) -> Snapshot:
    """No replica of the task has told anything."""
    task = snapshot.tasks[TASK]
    blank = dict.fromkeys(("processed_total", "service_ms", "interarrival_ms", "utilization", "cpu"))
    blind = msgspec.structs.replace(task, **blank, useful_s=None, backlog_total=None, instances=None)
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, TASK: blind})


def not_a_number(snapshot: Snapshot) -> Snapshot:
    """A service time that is none."""
    wrong = msgspec.structs.replace(snapshot.tasks[TASK], service_ms=math.nan)
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, TASK: wrong})


class Stale:
    """The first snapshot for ever."""

    def __init__(self) -> None:
        self._first: Snapshot | None = None

    def __call__(self, snapshot: Snapshot) -> Snapshot:
        self._first = self._first or snapshot
        return self._first


def dies(_: Snapshot) -> Snapshot:
    """The controller meets something that it does not expect."""
    raise ZeroDivisionError("a fault of the controller")


def blinded(bed: Bed, spoil: Callable[[], Spoil], words: str) -> Outcome:
    """A flow that needs more replicas: none is added, none taken away, and the alarm says why."""
    flow = penstock.Flow("trial")
    source = flow.source(bed.source(SECONDS, 350.0), name=SOURCE)
    parallelism = penstock.elastic(1, 4, initial=2, pool=4)
    source.task(Slow, name=TASK, parallelism=parallelism).sink(bed.witness(), name=SINK)
    flow.constrain("50 ms", [f"{SOURCE}->{TASK}", TASK, f"{TASK}->{SINK}"])
    job = bed.run(flow, sampling=0.5, policy=None)
    bed.await_items(300, job)
    with alarms() as heard:
        control = Control(Spoiled(job, spoil()), ControlPlan("ds2", AT_ONCE, interval="1 s"))
        time.sleep(bed.chance.uniform(0.0, 0.5))
        bed.end(job)
        control.join(10.0)
    bed.figures["heard"] = [line.splitlines()[0] for line in heard]
    effects = [entry.effect for entry in control.decisions() if entry.effect is not None]
    bed.expect("decisions carried out", len(effects), "==", 0)
    bed.expect("active replicas", job.metrics().tasks[TASK].active, "==", 2)
    bed.expect("alarm", any(words in line for line in heard))
    return bed.outcome()


def _row(name: str, about: str, spoil: Callable[[], Spoil], words: str) -> Row:
    return Row(name, about, "local", partial(blinded, spoil=spoil, words=words))


ROWS = (
    _row("metrics-missing", "no measurements of a task", lambda: missing, "the configuration stays"),
    _row("metrics-nan", "measurements that are not numbers", lambda: not_a_number, "the configuration stays"),
    _row("metrics-stale", "the same measurements again and again", Stale, "the configuration stays"),
    _row("controller-dead", "the controller dies", lambda: dies, "keeps its last configuration"),
)
