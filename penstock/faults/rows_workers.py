"""Worker processes that die, and what tasks of users do to theirs."""

import importlib
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from penstock.faults.bed import SINK, SOURCE, TASK, Bed
from penstock.faults.items import PARTITIONS, Pass
from penstock.faults.row import Outcome, Row
from penstock.faults.tasks import Eats, Hangs, Leaks, Parent, Poisoned
from penstock.faults.victims import kill, kill_worker, wait_until, zygotes

SECONDS: Final = 5.5
RECOVERS_IN_S: Final = 3.0


def worker_killed(bed: Bed, task: str, moves_s: float = 0.0) -> Outcome:
    """One process of a task; its successor gets what was not acknowledged.

    For `moves_s` after a commit, replicas may be in the move to another executor.
    """
    job = bed.flowing(bed.flow(SECONDS + moves_s))
    time.sleep(moves_s)
    bed.strike(partial(kill_worker, job, task, bed.chance))
    bed.end(job)
    bed.expect("workers replaced", job.metrics().tasks[task].restarts)
    return bed.outcome()


def zygote_killed(bed: Bed) -> Outcome:
    """The process that forks workers: they live on without it, and their successors come of another."""
    job = bed.flowing(bed.flow(SECONDS))
    bed.strike(lambda: kill(zygotes()[0]))
    bed.end(job)
    return bed.outcome()


def item_put_aside(bed: Bed, task: type[Pass], problem: str, **limits: str) -> Outcome:
    """One item of each split ends its worker: it becomes a dead letter, all others arrive, soon in time."""
    job = bed.flowing(bed.flow(SECONDS, task, on_error="dead_letter", **limits))
    bed.strike(lambda: None, 0.0, 0.0)
    bed.end(job)
    letters = [
        json.loads(line) for path in bed.letters.glob("*.jsonl") for line in path.read_text().splitlines()
    ]
    bed.expect("items put aside", len({letter["item"] for letter in letters}), "==", PARTITIONS)
    bed.expect("told in words", all(problem in letter["error"] for letter in letters))
    return bed.outcome(put_aside=PARTITIONS)


def leaking(bed: Bed) -> Outcome:
    """A worker that has reached its limit is replaced, and no item is lost or put aside."""
    job = bed.flowing(bed.flow(SECONDS, Leaks, memory="60 MB"))
    bed.strike(lambda: None, 0.0, 0.0)
    bed.end(job)
    bed.expect("workers replaced", job.metrics().tasks[TASK].restarts, ">=", 2)
    return bed.outcome()


def forking_task_killed(bed: Bed) -> Outcome:
    """The processes that its task has forked end with a worker."""
    children = bed.directory / "children"
    job = bed.flowing(bed.flow(SECONDS, Parent(children)))
    bed.strike(partial(kill_worker, job, TASK, bed.chance))
    bed.end(job)
    forked = [int(pid) for pid in children.read_text().split()]
    bed.expect("processes forked", len(forked), ">=", 3)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in forked), "what was forked ends")
    return bed.outcome()


MODULE = """
import threading
from penstock.faults.tasks import Threaded, tick

for _ in range(4):
    threading.Thread(target=tick, daemon=True).start()

class Loaded(Threaded):
    pass
"""


def threads_of_users(bed: Bed) -> Outcome:
    """A module that starts threads when it is imported, a task that starts more, and a worker killed."""
    (bed.directory / "module_with_threads.py").write_text(MODULE)
    sys.path.insert(0, str(bed.directory))
    try:
        loaded = importlib.import_module("module_with_threads").Loaded
        job = bed.flowing(bed.flow(SECONDS, loaded))
        bed.strike(partial(kill_worker, job, TASK, bed.chance))
        bed.end(job)
    finally:
        sys.path.remove(str(bed.directory))
        sys.modules.pop("module_with_threads", None)
    return bed.outcome()


def _row(name: str, about: str, run: Any) -> Row:
    return Row(name, about, "local", run, RECOVERS_IN_S)


ROWS = (
    _row("kill-source-worker", "kill -9 a worker of the source", partial(worker_killed, task=SOURCE)),
    _row("kill-task-worker", "kill -9 a worker of the task", partial(worker_killed, task=TASK)),
    _row("kill-sink-worker", "kill -9 the worker of the sink", partial(worker_killed, task=SINK)),
    _row("kill-zygote", "kill -9 the process that forks the workers", zygote_killed),
    _row("kill-forking-task", "kill -9 a worker whose task has forked processes", forking_task_killed),
    _row(
        "threads-of-users", "kill -9 a worker; its task and the task's module start threads", threads_of_users
    ),
    Row(
        "item-that-kills",
        "items that end the interpreter each time they come",
        "local",
        partial(item_put_aside, task=Poisoned, problem="has killed its worker process three times"),
    ),
    Row(
        "hangs",
        "items that a function never comes back from, timeout=0.5 s",
        "local",
        partial(item_put_aside, task=Hangs, problem="timeout=", timeout="0.5 s"),
    ),
    Row(
        "eats-memory",
        "items that take more and more memory, memory=60 MB",
        "local",
        partial(item_put_aside, task=Eats, problem="memory=", memory="60 MB"),
    ),
    Row("leaks", "a task that keeps something of every item, memory=60 MB", "local", leaking, RECOVERS_IN_S),
)
