"""Tasks that keep state, while workers, replicas and drivers come and go: all commits are epoch marks.

STATE: after the drain every key was counted as often as one process would have, and the sink, which takes
part in commits, shows every item once. Those of a key are in order; of a channel they need not be, because
items of keys that change hands wait for their state, and others pass them.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import penstock
from penstock.epochs.looking import look
from penstock.faults.bed import SINK, SOURCE, TASK, Bed
from penstock.faults.items import Pass
from penstock.faults.row import Outcome, Row, Where
from penstock.faults.rows_checkpoint import full, lacks_mounts
from penstock.faults.rows_driver import killed_and_resumed
from penstock.faults.rows_executors import RECOVERS_IN_S as EXECUTOR_RECOVERS_IN_S
from penstock.faults.rows_executors import kill_one as kill_executor
from penstock.faults.tasks import KEYS, Counts, key_of
from penstock.faults.victims import kill, kill_one, kill_worker, living, wait_until, zygotes
from penstock.spark.job import Job

SECONDS: Final = 14.0
SHORT_S: Final = 10.0
MOST: Final = 4
BEHIND: Final = "behind"
RECOVERS_IN_S: Final = 10.0
"""All that depends on a worker goes back to the last commit."""
UNWRITTEN: Final = "writing its state failed, in the checkpoint {place}/epochs"
"""What a worker says that finds no room."""

Change = Callable[[Job], None]


def counting(
    bed: Bed, seconds: float | None, replicas: int = 2, *, most: int = MOST, behind: Sequence[str] = ()
) -> penstock.Flow:
    """Source, a count by key with one to so many replicas, tasks `behind` it that may share its process, and
    a sink that writes each item once.
    """
    flow = penstock.Flow("trial", ids=True)
    source = flow.source(bed.source(seconds), name=SOURCE)
    elastic = penstock.elastic(1, most, initial=replicas, pool=most)
    last = source.by_key(key_of).task(Counts, name=TASK, parallelism=elastic)
    for name in behind:
        last = last.forward().task(Pass, name=name, parallelism=elastic)
    last.sink(bed.once(), name=SINK)
    return flow


def flowing(bed: Bed, seconds: float | None, replicas: int = 2, **shape: Any) -> Job:
    """With a commit each second."""
    return bed.flowing(counting(bed, seconds, replicas, **shape), commit="1 s")


def counted_wrong(bed: Bed, counts: Mapping[int, int]) -> int:
    """Keys whose count in the last commit is not that of so many items of each split."""
    found: dict[Any, int] = {one.key: one.value for one in look(bed.checkpoint).kept[TASK]}
    expected = [sum(count // KEYS + (key < count % KEYS) for count in counts.values()) for key in range(KEYS)]
    return sum(found.pop(key, 0) != count for key, count in enumerate(expected)) + len(found)


def judged(bed: Bed, counts: dict[int, int] | None = None) -> Outcome:
    """When the flow is over: of so many items of each split, by default of all."""
    counted = bed.expected() if counts is None else counts
    bed.expect("STATE: keys counted wrong", counted_wrong(bed, counted), "==", 0)
    return bed.outcome(counts=counted, keys=KEYS)


def ended(bed: Bed, job: Job) -> Outcome:
    """When the source has run dry."""
    bed.end(job)
    return judged(bed)


def worker_killed(bed: Bed, task: str) -> Outcome:
    """State depends on all tasks up to the one that keeps it, and on the sink."""
    job = flowing(bed, SECONDS)
    bed.strike(partial(kill_worker, job, task, bed.chance))
    return ended(bed, job)


def zygote_killed(bed: Bed) -> Outcome:
    """Workers live on without it; the next start needs another."""
    job = flowing(bed, SECONDS)

    def fault() -> None:
        kill(zygotes()[0])
        kill_worker(job, TASK, bed.chance)

    bed.strike(fault)
    return ended(bed, job)


def rescale(job: Job) -> None:
    """Keys change hands three times."""
    for replicas in (MOST, 1, 3):
        job.set_active(TASK, replicas)


def resize(job: Job) -> None:
    """Keys change hands at boundaries, with other pools."""
    for pool in (1, MOST, 3):
        job.adapt({TASK: pool}, {}, pools={TASK: pool})
        time.sleep(0.5)


def chain(job: Job) -> None:
    """The task that keeps state hosts the one behind it, with other replicas too, and hosts nobody again."""
    for replicas in (MOST, 1, 3):
        job.set_chains([[TASK, BEHIND]])
        job.set_active(TASK, replicas)
        job.set_chains([])


def changed(bed: Bed, change: Change, *, killing: bool, behind: Sequence[str] = ()) -> Outcome:
    """Under load; with `killing`, a worker dies while the change takes place."""
    job = flowing(bed, SECONDS if killing else SHORT_S, behind=behind)
    if not killing:
        bed.strike(partial(change, job), 0.0, 0.5)
        bed.healed()  # so items must be due after the last change
        return ended(bed, job)
    changing = threading.Thread(target=_change_if_it_runs, args=(job, change), name="change", daemon=True)

    def fault() -> None:
        changing.start()
        time.sleep(bed.chance.uniform(0.0, 1.0))
        kill_one(lambda: bed.chance.choice(living(job, TASK)))

    bed.strike(fault, 0.0, 0.5)
    changing.join(60.0)
    bed.expect("change came to its end", not changing.is_alive())
    return ended(bed, job)


def _change_if_it_runs(job: Job, change: Change) -> None:
    """A change that meets a flow that is being started again is refused in words."""
    try:
        change(job)
    except penstock.FlowError:
        wait_until(lambda: job.status.state == "running", "the flow is started again", 60.0)


def started_with_others(bed: Bed) -> Outcome:
    """stop() under load, and a start with another number of replicas."""
    job = flowing(bed, SECONDS)
    time.sleep(bed.chance.uniform(0.0, 1.0))
    job.stop("20 s")
    bed.expect("stopped", job.status.state == "stopped")
    return ended(bed, flowing(bed, SECONDS, replicas=3))


def executor_killed(bed: Bed) -> Outcome:
    """One of two."""
    job = flowing(bed, None, most=2)
    bed.strike(partial(kill_executor, job, bed.chance))
    counts = bed.settle(job)
    bed.expect("restarts", job.metrics().restarts, ">=", 1)
    return judged(bed, counts)


def driver_killed(bed: Bed) -> Outcome:
    """State goes on with the next driver, from the last commit of the first."""
    bed.once()
    return judged(bed, killed_and_resumed(bed, "once=true", "counts=true"))


def _row(
    name: str, about: str, run: Any, recovers_in_s: float | None = RECOVERS_IN_S, where: Where = "local"
) -> Row:
    return Row(f"state-{name}", f"keyed state: {about}", where, run, recovers_in_s)


ROWS = (
    _row("kill-task-worker", "kill -9 a worker of the task that keeps it", partial(worker_killed, task=TASK)),
    _row("kill-source-worker", "kill -9 a worker of the source", partial(worker_killed, task=SOURCE)),
    _row("kill-sink-worker", "kill -9 the worker of the sink", partial(worker_killed, task=SINK)),
    _row("kill-zygote", "kill -9 the process that forks the workers, and a worker", zygote_killed),
    _row("kill-executor", "kill -9 one of two executors", executor_killed, EXECUTOR_RECOVERS_IN_S, "cluster"),
    _row("kill-driver", "kill -9 the driver, and a start on the same checkpoint", driver_killed, None, "own"),
    _row("rescale", "replicas change under load", partial(changed, change=rescale, killing=False), None),
    _row("resize-pool", "pools change under load", partial(changed, change=resize, killing=False), None),
    _row(
        "chain",
        "the task that keeps it is chained and taken apart under load",
        partial(changed, change=chain, killing=False, behind=(BEHIND,)),
        None,
    ),
    _row(
        "kill-during-rescale",
        "kill -9 a worker while keys change hands",
        partial(changed, change=rescale, killing=True),
    ),
    _row(
        "kill-during-chain",
        "kill -9 a worker while tasks are chained",
        partial(changed, change=chain, killing=True, behind=(BEHIND,)),
    ),
    _row("other-replicas", "stop(), and a start with other replicas", started_with_others, None),
    Row(
        "state-disk-full",
        "keyed state: the disk of the checkpoint is full when it is written",
        "local",
        partial(full, flow=partial(counting, seconds=None), judged=judged, words=UNWRITTEN),
        lacks=lacks_mounts,
    ),
)
