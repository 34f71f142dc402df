"""A flow whose state is worth moving: so many keys with a record of 100 bytes each, and items under way.

A source makes all keys known as fast as it can, and runs dry; another one goes on at a fixed rate, by a
schedule that goes on while the flow stands still.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy
from numpy.typing import NDArray

import penstock
from penstock.bench.keyed import LIFETIME, Kept, counted, filling, key_text, number_of, one_of
from penstock.bench.state_count import bytes_per_key
from penstock.faults.items import numbers
from penstock.spark.job import Job
from penstock.testing import Ledger
from penstock.testing.arrivals import Entries
from penstock.wire.keys import key_group

RATE_PER_S: Final = 5_000.0
FILL_PER_S: Final = 400_000.0
SPAN: Final = 4
"""As many replicas as there may be."""
COMMIT: Final = "1 s"
_FILLS_WITHIN_S: Final = 180.0
_LOOK_S: Final = 0.1


def flow(ledger: Ledger, keys: int, place: Path, replicas: int, *, elastic: bool) -> penstock.Flow:
    """Two sources -> count by key -> ledger, in envelopes of 20 ms."""
    chosen = penstock.Flow("kept")
    key = one_of(keys)
    known = chosen.source(penstock.paced(filling, FILL_PER_S, count=keys), name="fill").batched(LIFETIME)
    items = chosen.source(numbers(RATE_PER_S, None, place / "zero", partitions=1), name="items")
    pool = penstock.elastic(1, SPAN, initial=replicas, pool=SPAN) if elastic else replicas
    keyed = items.batched(LIFETIME).by_key(key)
    counts = keyed.task(Kept, known.by_key(key), name="count", parallelism=pool)
    counts.batched(LIFETIME).sink(ledger, name="ledger")
    return chosen


def await_filled(job: Job, keys: int) -> None:
    """Until the count has seen every key."""
    within(job, lambda: job.metrics().tasks["count"].items_in >= keys, _FILLS_WITHIN_S)


def within(job: Job, condition: Callable[[], bool], seconds: float) -> None:
    """Look again and again, while the flow runs."""
    deadline_s = time.monotonic() + seconds
    while not condition():
        if job.await_end(_LOOK_S):
            raise RuntimeError(f"the flow has ended: {job.exception()}")
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"not within {seconds:g} s")


def memory_per_key(job: Job, keys: int) -> float | None:
    """In bytes."""
    return bytes_per_key(job, keys, "count", "ledger")


def counted_wrong(job: Job, entries: Entries, keys: int) -> int:
    """By how much the counts of all keys, as they are committed, are beside the items that arrived."""
    held = [counted(one.value) for one in job.state("count")]
    arrived = len(numpy.unique(entries.index))
    return abs(sum(held) - keys - arrived) + abs(len(held) - keys)


def groups_by_key(keys: int) -> NDArray[numpy.int64]:
    """The group of each key, by its number."""
    return numpy.array([key_group(key_text(number)) for number in range(keys)], dtype=numpy.int64)


def groups_of(entries: Entries, groups: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """The group of each item."""
    found: NDArray[numpy.int64] = groups[number_of(entries.index, len(groups))]
    return found


def started(flow: penstock.Flow, place: Path, *, marks: bool = True) -> Job:
    """Run it: with a commit each second, or with boundaries only where they are asked for."""
    checkpoint = place / "checkpoint"
    if marks:
        return penstock.run(flow, checkpoint=checkpoint, commit=COMMIT, policy=None)
    return penstock.run(flow, checkpoint=checkpoint, commit="1 h", commit_by="boundaries", policy=None)
