"""The readers of the splits that a source worker reads, and which of them have something now."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.io.protocol import JointReader, JointSource, Reader, RecordReader, Source, SourceClock
from penstock.wire.ids import origin_of
from penstock.wire.orders import Position

_TURN_S = 0.001
"""How long one of several readers may wait for its item: the others stand still meanwhile."""


@dataclass(slots=True)
class OpenSplit:
    """A split that is read. Ids of its items are (origin, ordinal); all before `position` was sent."""

    name: str
    origin: int
    reader: Reader[Any]
    records: RecordReader | None
    """The same reader, if its items have numbers of their own."""
    position: Position
    lag_items: int | None = None
    """What was there and not read, when somebody last looked."""

    def look(self) -> None:
        """See how far it is behind."""
        if self.records is not None:
            self.lag_items = self.records.lag_items


class Turn(NamedTuple):
    """A split that is to be read: at most so many items, of which the first may be waited for so long."""

    split: OpenSplit
    limit: int
    wait_s: float


class Readers:
    """Of one source. They stay open over batches, as long as a batch begins where the last one ended."""

    def __init__(self, name: str, source: Source[Any]) -> None:
        self._name = name
        self._source = source
        self._joint: JointReader[Any] | None = None
        self._looked_ns = 0
        self.splits: dict[str, OpenSplit] = {}
        self.undone: list[OpenSplit] = []
        """Those that have not run dry."""

    @property
    def only(self) -> OpenSplit | None:
        """The one that is left to be read, if there is one, and it is read by itself."""
        return self.undone[0] if len(self.undone) == 1 and self._joint is None else None

    @property
    def positions(self) -> dict[str, Position]:
        """Where all splits stand."""
        return {name: split.position for name, split in self.splits.items()}

    @property
    def lag_items(self) -> int | None:
        """How many items were there and not read, when each split was last looked at; None if none knows.

        A replica that has no split to read for now is behind with nothing, where others know of theirs.
        """
        if not self.splits and isinstance(self._source, JointSource):
            return 0
        known = [split.lag_items for split in self.splits.values() if split.lag_items is not None]
        return sum(known) if known else None

    def open(self, positions: Mapping[str, Position], clock: Callable[[str], SourceClock]) -> bool:
        """Read these splits from now on; False if that is what was read already."""
        if self.splits and self.positions == positions:
            return False
        if isinstance(self._source, JointSource):
            self._open_jointly(self._source, positions)
        else:
            self._open_each(positions, clock)
        self.undone = [split for split in self.splits.values() if not split.position.done]
        return True

    def run_dry(self, split: OpenSplit, at: Position) -> None:
        """There is no more of it, from this position on."""
        split.position = at
        self.undone.remove(split)

    def _open_jointly(self, source: JointSource, positions: Mapping[str, Position]) -> None:
        self.close()
        if positions:
            self._joint = source.open_jointly({name: at.offset for name, at in positions.items()})
            self.splits = {
                name: self._opened(name, self._joint.readers[name], at) for name, at in positions.items()
            }

    def _open_each(self, positions: Mapping[str, Position], clock: Callable[[str], SourceClock]) -> None:
        before, self.splits = self.splits, {}
        for name, split in before.items():
            if positions.get(name) != split.position:
                split.reader.close()
        for name, at in positions.items():
            known = before.get(name)
            if known is None or known.position != at:
                known = self._opened(name, self._source.open(name, at.offset, clock(name)), at)
            self.splits[name] = known

    def _opened(self, split: str, reader: Reader[Any], at: Position) -> OpenSplit:
        records = reader if isinstance(reader, RecordReader) else None
        return OpenSplit(split, origin_of(self._name, split), reader, records, at)

    def take_looked_ns(self) -> int:
        """The CPU time, without waits, that it took to see which splits have something; told once."""
        looked_ns, self._looked_ns = self._looked_ns, 0
        return looked_ns

    def passes(self, limit: int, wait_s: float) -> Iterator[Iterator[Turn]]:
        """Whom to read, `limit` items of all; the second pass is for when nothing came in the first."""
        if self._joint is not None:
            began_ns = time.thread_time_ns()
            ready = self._joint.await_any(limit, wait_s)
            self._looked_ns = time.thread_time_ns() - began_ns
            yield (Turn(self.splits[name], limit, 0.0) for name in ready)
            return
        undone = [*self.undone]
        if len(undone) > 1:
            each = -(-limit // len(undone))
            yield (Turn(split, each, 0.0) for split in undone)
            each_s = min(_TURN_S, wait_s / len(undone))
            yield (Turn(split, each, each_s) for split in undone)
        else:
            yield (Turn(split, limit, wait_s) for split in undone)

    def close(self) -> None:
        """Release what all readers hold."""
        if self._joint is not None:
            self._joint.close()
            self._joint = None
        else:
            for split in self.splits.values():
                split.reader.close()
        self.splits, self.undone = {}, []
