"""What the flow of a trial is made of: numbered items that tell which workers they came through.

An item is (split, number in it, due ns, way, payload). The way is folded from every instance of a worker that
the item has passed, so items of one split with the same way took the same channels and must be in order.

No NumPy and no Spark here: workers import this module.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock.io.dedup import DedupJsonl
from penstock.io.paced import Paced, PacedReader, paced
from penstock.io.protocol import SinkContext, SourceClock
from penstock.io.schedule import Schedule
from penstock.testing.ledger import Ledger, Stamped

PARTITIONS = 2
_WAY = (1 << 62) - 1
_FOLD = 1_000_003


def through(item: Stamped, instance: int) -> Stamped:
    """The item when it has passed an instance of a worker as well."""
    partition, index, due_ns, way, payload = item
    return partition, index, due_ns, (way * _FOLD + instance) & _WAY, payload


def numbered(partition: int, index: int, seed: int, due_ns: int, instance: int = 0) -> Stamped:  # noqa: ARG001
    """`make` of the paced source."""
    return through((partition, index, due_ns, 0, None), instance)


@dataclass(frozen=True)
class Numbers:
    """A paced source with one time zero for all starts of the flow, kept in a file.

    A schedule that began anew with each start would hide that a flow stood still: items that came due
    meanwhile would not be late.
    """

    paced: Paced[Any]
    zero: str
    name: str = "numbers"

    @property
    def splits(self) -> Sequence[str]:
        return self.paced.splits

    def start(self, split: str) -> int:
        return self.paced.start(split)

    def open(self, split: str, offset: int, clock: SourceClock) -> PacedReader[Any]:
        began_ns = _agreed(Path(self.zero), clock.run_start_ns)
        marked = replace(self.paced, make=partial(numbered, instance=time.monotonic_ns()))
        return marked.open(split, offset, replace(clock, run_start_ns=began_ns, run_offset=0))

    def counts(self) -> dict[int, int]:
        """How many items each partition has in all; none for a source without an end."""
        counts = {number: self.paced.count(number) for number in range(self.paced.partitions)}
        return {number: count for number, count in counts.items() if count is not None}


def numbers(
    rate: float | Schedule,
    seconds: float | None,
    zero: Path,
    *,
    name: str = "numbers",
    partitions: int = PARTITIONS,
) -> Numbers:
    """Items at a rate for a time, or until the flow is stopped."""
    return Numbers(paced(numbered, rate, partitions=partitions, seconds=seconds), str(zero), name)


def _agreed(place: Path, ns: int) -> int:
    """What the first to ask proposed."""
    own = place.with_name(f"{place.name}.{os.getpid()}")
    own.write_text(str(ns))
    with suppress(FileExistsError):
        os.link(own, place)
    own.unlink()
    return int(place.read_text())


def unchanged(item: dict[str, int]) -> dict[str, int]:
    """The task of a trial from topic to topic."""
    return item


class Pass:
    """The task of a trial: passes every item on."""

    instance = 0

    def open(self, context: Any) -> None:  # noqa: ARG002 - what is kept is when
        self.instance = time.monotonic_ns()

    def process(self, item: Stamped, out: Any) -> None:
        out(through(item, self.instance))


class Witness(Ledger):
    """The sink of a trial: who arrived, when, by which way."""

    _instance = 0

    def open(self, context: SinkContext) -> None:
        super().open(context)
        self._instance = time.monotonic_ns()

    def write(self, item: Stamped) -> None:
        super().write(through(item, self._instance))


class Once(DedupJsonl):
    """The same in the files of `dedup_jsonl`: what comes twice is written once."""

    _instance = 0

    def open(self, context: SinkContext) -> None:
        super().open(context)
        self._instance = time.monotonic_ns()

    def write(self, item: Stamped) -> None:
        partition, index, due_ns, way, _ = through(item, self._instance)
        super().write((partition, index, due_ns, time.monotonic_ns(), way))


def dated(partition: int, index: int, seed: int) -> Stamped:  # noqa: ARG001
    """`make` of a source that tells when it made an item, by the wall clock: it is one for all executors."""
    return partition, index, 0, 0, time.time_ns()


class Dated(Witness):
    """The sink for it: as due it takes when an item was made, as arrived when it came."""

    def record(self, item: Stamped) -> tuple[int, int, int, int, int]:
        partition, index, _, way, made_ns = item
        assert isinstance(made_ns, int)
        return partition, index, made_ns, time.time_ns(), way
