"""Tasks that keep state, while workers, replicas and drivers come and go: all commits are epoch marks.

STATE: after the drain every key was counted as often as one process would have, and the sink, which takes
part in commits, shows every item once. Those of a key are in order; of a channel they need not be, because
items of keys that change hands wait for their state, and others pass them.
"""

import threading
import time
from functools import partial
from typing import Any, Final

import penstock
from penstock.faults.bed import SINK, SOURCE, TASK, Bed
from penstock.faults.row import Outcome, Row
from penstock.faults.tasks import KEYS, Counts, key_of
from penstock.faults.victims import kill, kill_one, kill_worker, living, wait_until, zygotes
from penstock.spark.job import Job

SECONDS: Final = 14.0
SHORT_S: Final = 6.0
MOST: Final = 4
RECOVERS_IN_S: Final = 10.0
"""All that depends on a worker goes back to the last commit."""


def counting(bed: Bed, seconds: float, replicas: int = 2) -> penstock.Flow:
    """Source, a count by key that may have one to four replicas, and a sink that writes each item once."""
    sink = bed.once()
    flow = penstock.Flow("trial", ids=True)
    source = flow.source(bed.source(seconds), name=SOURCE)
    elastic = penstock.elastic(1, MOST, initial=replicas, pool=MOST)
    source.by_key(key_of).task(Counts, name=TASK, parallelism=elastic).sink(sink, name=SINK)
    return flow


def flowing(bed: Bed, seconds: float, replicas: int = 2) -> Job:
    """With a commit each second."""
    return bed.flowing(counting(bed, seconds, replicas), commit="1 s")


def counted_wrong(bed: Bed, job: Job) -> int:
    """Keys whose count in the last commit is not that of all items of the source."""
    found: dict[Any, int] = {one.key: one.value for one in job.state(TASK) if one.name == "seen"}
    expected = [
        sum(count // KEYS + (key < count % KEYS) for count in bed.expected().values()) for key in range(KEYS)
    ]
    return sum(found.pop(key, 0) != count for key, count in enumerate(expected)) + len(found)


def judged(bed: Bed, job: Job) -> Outcome:
    """When the source has run dry."""
    bed.end(job)
    bed.expect("STATE: keys counted wrong", counted_wrong(bed, job), "==", 0)
    return bed.outcome(keys=KEYS)


def worker_killed(bed: Bed, task: str) -> Outcome:
    """State depends on all tasks up to the one that keeps it, and on the sink."""
    job = flowing(bed, SECONDS)
    bed.strike(partial(kill_worker, job, task, bed.chance))
    return judged(bed, job)


def zygote_killed(bed: Bed) -> Outcome:
    """Workers live on without it; the next start needs another."""
    job = flowing(bed, SECONDS)

    def fault() -> None:
        kill(zygotes()[0])
        kill_worker(job, TASK, bed.chance)

    bed.strike(fault)
    return judged(bed, job)


def rescale(job: Job) -> None:
    """Keys change hands three times."""
    for replicas in (MOST, 1, 3):
        job.set_active(TASK, replicas)


def rescaled(bed: Bed, *, killing: bool) -> Outcome:
    """Under load; with `killing`, a worker dies while keys change hands."""
    job = flowing(bed, SECONDS if killing else SHORT_S)
    if not killing:
        time.sleep(bed.chance.uniform(0.0, 0.5))
        rescale(job)
        return judged(bed, job)
    changing = threading.Thread(target=_rescale_if_it_runs, args=(job,), name="change", daemon=True)

    def fault() -> None:
        changing.start()
        time.sleep(bed.chance.uniform(0.0, 1.0))
        kill_one(lambda: bed.chance.choice(living(job, TASK)))

    bed.strike(fault, 0.0, 0.5)
    changing.join(60.0)
    bed.expect("change came to its end", not changing.is_alive())
    return judged(bed, job)


def _rescale_if_it_runs(job: Job) -> None:
    """A change that meets a flow that is being started again is refused in words."""
    try:
        rescale(job)
    except penstock.FlowError:
        wait_until(lambda: job.status.state == "running", "the flow is started again", 60.0)


def started_with_others(bed: Bed) -> Outcome:
    """stop() under load, and a start with another number of replicas."""
    job = flowing(bed, SECONDS)
    time.sleep(bed.chance.uniform(0.0, 1.0))
    job.stop("20 s")
    bed.expect("stopped", job.status.state == "stopped")
    return judged(bed, flowing(bed, SECONDS, replicas=3))


def _row(name: str, about: str, run: Any, recovers_in_s: float | None = RECOVERS_IN_S) -> Row:
    return Row(f"state-{name}", f"keyed state: {about}", "local", run, recovers_in_s)


ROWS = (
    _row("kill-task-worker", "kill -9 a worker of the task that keeps it", partial(worker_killed, task=TASK)),
    _row("kill-source-worker", "kill -9 a worker of the source", partial(worker_killed, task=SOURCE)),
    _row("kill-sink-worker", "kill -9 the worker of the sink", partial(worker_killed, task=SINK)),
    _row("kill-zygote", "kill -9 the process that forks the workers, and a worker", zygote_killed),
    _row("rescale", "replicas change under load", partial(rescaled, killing=False), None),
    _row("kill-during-rescale", "kill -9 a worker while keys change hands", partial(rescaled, killing=True)),
    _row("other-replicas", "stop(), and a start with other replicas", started_with_others, None),
)
