"""Changes of a running flow, workers that die meanwhile, and flows beside each other."""

import threading
import time
from functools import partial
from typing import Any, Final

from pyspark.sql import SparkSession

import penstock
from penstock.faults.bed import RATE_PER_S, SINK, SOURCE, TASK, Bed, committed
from penstock.faults.items import Pass, numbers
from penstock.faults.row import Outcome, Row
from penstock.faults.sinks import Drop
from penstock.faults.victims import kill_one, kill_worker, living
from penstock.spark.job import Job
from penstock.spark.session import all_slots

SECONDS: Final = 5.5
RECOVERS_IN_S: Final = 3.0
HEAD: Final = "head"
POOL: Final = 6


def row_of_two(bed: Bed, seconds: float) -> penstock.Flow:
    """Two tasks that may share a process."""
    flow = penstock.Flow("trial")
    source = flow.source(bed.source(seconds), name=SOURCE)
    parallelism = penstock.elastic(1, 8, initial=2, pool=POOL)
    head = source.task(Pass, name=HEAD, parallelism=parallelism)
    head.forward().task(Pass, name=TASK, parallelism=parallelism).sink(bed.witness(), name=SINK)
    return flow


def rescale(job: Job) -> None:
    """More replicas, fewer, and another pool."""
    for replicas in (POOL, 1, 3):
        job.adapt({HEAD: replicas, TASK: replicas}, {})
        time.sleep(0.2)
    job.adapt({}, {}, pools={HEAD: 4, TASK: 4})


def chain(job: Job) -> None:
    """Into one process and apart again, twice."""
    for chains in ([[HEAD, TASK]], [], [[HEAD, TASK]], []):
        job.set_chains(chains)
        time.sleep(0.2)


def changed(bed: Bed, change: Any, *, killing: bool) -> Outcome:
    """Under load; with `killing`, a worker dies while the change takes place."""
    job = bed.flowing(row_of_two(bed, SECONDS))
    if not killing:
        time.sleep(bed.chance.uniform(0.2, 0.8))
        change(job)
        bed.end(job)
        counted = {name: task.items_in for name, task in job.metrics().tasks.items()}
        bed.figures["counted"] = counted
        total = sum(bed.expected().values())
        bed.expect("counted by every task", all(count == total for count in counted.values()))
        return bed.outcome()
    changing = threading.Thread(target=change, args=(job,), name="change", daemon=True)

    def fault() -> None:
        changing.start()
        time.sleep(bed.chance.uniform(0.0, 0.5))
        kill_one(lambda: bed.chance.choice([*living(job, HEAD), *living(job, TASK)]))

    bed.strike(fault, 0.2, 0.8)
    changing.join(60.0)
    bed.expect("change came to its end", not changing.is_alive())
    bed.end(job)
    return bed.outcome()


def stopped_under_load(bed: Bed) -> Outcome:
    """stop() drains and commits what was read; nothing of it is lost or comes twice in the next run."""
    for _ in range(2):
        job = bed.run(bed.flow(None))
        bed.await_items(sum(committed(bed.checkpoint).values()) + 600, job)
        time.sleep(bed.chance.uniform(0.0, 1.0))
        began_s = time.monotonic()
        job.stop("20 s")
        bed.expect("stopped after, s", time.monotonic() - began_s, "<=", 20.0)
        bed.expect("stopped", job.status.state == "stopped")
    return bed.outcome(counts=committed(bed.checkpoint))


def second_flow(bed: Bed) -> Outcome:
    """Beside another flow whose worker is killed; a third that does not fit is refused in words."""
    job = bed.flowing(bed.flow(2 * SECONDS))  # the other begins when this one is committed
    beside = Bed(bed.directory / "beside", bed.chance)
    beside.directory.mkdir()
    other = beside.flowing(beside.flow(SECONDS))
    width = all_slots(SparkSession.active()) - 5
    bed.refused(
        partial(bed.run, _wide(bed, width), checkpoint=bed.directory / "third"),
        f'flow "wide" needs 2 for {SOURCE}, {width} for {TASK}, 1 for {SINK}',
        'by flow "trial"',
    )
    bed.strike(partial(kill_worker, other, TASK, bed.chance))
    bed.end(other)
    bed.end(job)
    bed.expect("lost by the other flow", beside.entries().lost(beside.expected()), "==", 0)
    return bed.outcome()


def too_few_slots(bed: Bed) -> Outcome:
    """Refused before it starts, in the words of the flow; one that runs goes on."""
    job = bed.flowing(bed.flow(2.5))
    slots = all_slots(SparkSession.active())
    bed.refused(
        partial(bed.run, _wide(bed, slots), checkpoint=bed.directory / "wide"),
        f"Spark has {slots} task slots",
        f"{slots + 3} are needed",
        f'flow "wide" needs 2 for {SOURCE}, {slots} for {TASK}, 1 for {SINK}',
    )
    bed.end(job)
    return bed.outcome()


def _wide(bed: Bed, replicas: int) -> penstock.Flow:
    flow = penstock.Flow("wide")
    source = numbers(RATE_PER_S, None, bed.directory / "zero-wide")
    flow.source(source, name=SOURCE).task(Pass, name=TASK, parallelism=replicas).sink(Drop(), name=SINK)
    return flow


def _row(name: str, about: str, change: Any, *, killing: bool) -> Row:
    return Row(
        name,
        about,
        "local",
        partial(changed, change=change, killing=killing),
        RECOVERS_IN_S if killing else None,
    )


ROWS = (
    _row("rescale", "replicas and pools change under load", rescale, killing=False),
    _row("chain", "tasks are chained and taken apart under load", chain, killing=False),
    _row("kill-during-rescale", "kill -9 a worker while replicas and pools change", rescale, killing=True),
    _row("kill-during-chain", "kill -9 a worker while tasks are chained", chain, killing=True),
    Row(
        "stop-under-load",
        "stop() under load, and a start on the same checkpoint",
        "local",
        stopped_under_load,
    ),
    Row("too-few-slots", "a flow that needs more task slots than there are", "local", too_few_slots),
    Row(
        "second-flow",
        "a second flow in the process, a third that does not fit",
        "local",
        second_flow,
        RECOVERS_IN_S,
    ),
)
