"""Code of users that raises, returns what cannot travel, or breaks the promise of a hook."""

import json
import threading
import time
from functools import partial
from typing import Any, Final

import penstock
from penstock.faults.bed import SELDOM, SINK, SOURCE, TASK, Bed, committed
from penstock.faults.items import Pass
from penstock.faults.row import Outcome, Row
from penstock.faults.sinks import Stubborn
from penstock.faults.tasks import EVERY, Locks, Mistakes, Raises, Swells

SECONDS: Final = 2.5


def put_aside(bed: Bed, task: type[Pass], problem: str, *, each: bool = True) -> Outcome:
    """Items that a task cannot process become dead letters with their reason; all others arrive in time."""
    job = bed.run(bed.flow(SECONDS, task, on_error="dead_letter"))
    bed.end(job)
    letters = [
        json.loads(line) for path in bed.letters.glob("*.jsonl") for line in path.read_text().splitlines()
    ]
    counts = bed.expected()
    bad = sum(count // EVERY if each else 1 for count in counts.values())
    bed.expect("dead letters", len(letters), "==", bad)
    bed.expect("counted as dead letters", job.metrics().tasks[TASK].dead_lettered, "==", bad)
    bed.expect("told in words", all(problem in letter["error"] for letter in letters))
    return bed.outcome(put_aside=bad)


def played_back(bed: Bed) -> Outcome:
    """Dead letters enter the mended flow where they failed, and arrive once; none of them waits after it."""
    bed.end(bed.run(bed.flow(SECONDS, Raises, on_error="dead_letter")))
    bad = sum(count // EVERY for count in bed.expected().values())
    (played,) = penstock.replay_dead_letters(bed.flow(SECONDS), bed.letters)
    bed.expect("played back", played.letters, "==", bad)
    bed.expect("failed again or passed over", played.failed_again + played.passed_over, "==", 0)
    again = partial(penstock.replay_dead_letters, bed.flow(SECONDS), bed.letters)
    bed.refused(again, "all are replayed")
    return bed.outcome()


def skipped(bed: Bed) -> Outcome:
    """Counted, and left out."""
    job = bed.run(bed.flow(SECONDS, Raises, on_error="skip"))
    bed.end(job)
    bad = sum(count // EVERY for count in bed.expected().values())
    bed.expect("counted as skipped", job.metrics().tasks[TASK].skipped, "==", bad)
    return bed.outcome(put_aside=bad)


def failed(bed: Bed) -> Outcome:
    """The flow ends, names task and item, and commits nothing of the batch: the mended flow loses nothing."""
    job = bed.run(bed.flow(SECONDS, Raises, on_error="fail"))
    bed.refused(
        partial(job.await_termination, 60), f'task "{TASK}"', "is wrong", "item:", error=penstock.JobFailed
    )
    bed.expect("restarts", job.metrics().restarts, "==", 0)
    bed.strike(lambda: None, 0.0, 0.0)
    bed.end(bed.run(bed.flow(SECONDS)))
    return bed.outcome()


def unpicklable(bed: Bed) -> Outcome:
    """Refused before anything starts, with the name of the task."""
    lock = threading.Lock()

    def uses_lock(item: Any) -> Any:
        with lock:
            return item

    flow = penstock.Flow("trial")
    flow.source(bed.source(SECONDS), name=SOURCE).map(uses_lock).sink(bed.witness(), name=SINK)
    bed.refused(partial(bed.run, flow), 'task "uses_lock"')
    return bed.outcome(counts={})


def hook_raises(bed: Bed, hook: str, *, at_stop: bool) -> Outcome:
    """Told as a failure, at a commit or at stop(); nothing after the last commit counts as committed."""
    sink = bed.witness(Stubborn)
    sink.hook = hook
    job = bed.run(bed.flow(None, sink=sink), commit=SELDOM)
    bed.await_items(300, job)
    job.boundary() if hook == "flush" else None
    before = committed(bed.checkpoint)
    time.sleep(0.5)
    act = job.stop if at_stop else job.boundary
    bed.refused(act, f'task "{SINK}"', f"{hook}() raised OSError: no room", error=penstock.JobFailed)
    bed.expect("commits after the failure", committed(bed.checkpoint) != before, "==", 0)
    bed.strike(lambda: None, 0.0, 0.0)
    again = bed.flowing(bed.flow(None))
    again.stop()
    return bed.outcome(counts=committed(bed.checkpoint))


ROWS = (
    Row(
        "raises-dead-letter",
        "a function raises, on_error=dead_letter",
        "local",
        partial(put_aside, task=Raises, problem="ValueError: item "),
    ),
    Row("replayed-letters", "dead letters are played back into the mended flow", "local", played_back),
    Row("raises-skip", "a function raises, on_error=skip", "local", skipped),
    Row("raises-fail", "a function raises, on_error=fail", "local", failed),
    Row("unpicklable-function", "a function that cannot be pickled", "local", unpicklable),
    Row(
        "unpicklable-result",
        "results that cannot be pickled",
        "local",
        partial(put_aside, task=Locks, problem="pickle"),
    ),
    Row(
        "oversized-result",
        "results of 65 MiB",
        "local",
        partial(put_aside, task=Swells, problem="65 MiB is larger than the 64 MiB", each=False),
    ),
    Row(
        "wrong-type",
        "items of another type than a function takes",
        "local",
        partial(put_aside, task=Mistakes, problem="AttributeError"),
    ),
    Row(
        "flush-raises-at-commit",
        "flush() of a sink raises at a commit",
        "local",
        partial(hook_raises, hook="flush", at_stop=False),
    ),
    Row(
        "flush-raises-at-stop",
        "flush() of a sink raises at stop()",
        "local",
        partial(hook_raises, hook="flush", at_stop=True),
    ),
    Row(
        "close-raises-at-stop",
        "close() of a sink raises at stop()",
        "local",
        partial(hook_raises, hook="close", at_stop=True),
    ),
)
