"""Items that a test gives in place of a source."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.durations import Duration, milliseconds
from penstock.flow.errors import FlowError
from penstock.flow.record import Record
from penstock.io.protocol import SourceClock

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class At:
    """An item that comes at a time after the start."""

    time_ns: int
    item: Any


Items: TypeAlias = Iterable[Any] | Mapping[str, Iterable[Any]]


def at(time: Duration, *items: Any) -> list[At]:
    """Items that come at a time after the start, for the inputs of `run`.

    >>> [*at("1 s", "a", "b"), "c"]
    [At(time_ns=1000000000, item='a'), At(time_ns=1000000000, item='b'), 'c']
    """
    time_ns = round(milliseconds(time) * NS_PER_MS)
    return [At(time_ns, item) for item in items]


@dataclass(frozen=True, slots=True)
class Given:
    """A source of items that are there already, split by split."""

    name: str
    parts: Mapping[str, Sequence[At]]

    @property
    def splits(self) -> Sequence[str]:
        return tuple(self.parts)

    def start(self, split: str) -> int:  # noqa: ARG002 - all splits begin alike
        return 0

    def open(self, split: str, offset: int, clock: SourceClock) -> "GivenReader":
        return GivenReader(self.parts[split], offset, clock)


@dataclass(slots=True)
class GivenReader:
    """Hands out what has come by now."""

    items: Sequence[At]
    offset: int
    clock: SourceClock

    def read(self, limit: int, wait_s: float) -> tuple[list[Any], list[int] | None] | None:  # noqa: ARG002 - by the clock
        if self.offset == len(self.items):
            return None
        now_ns = self.clock.now_ns()
        found: list[tuple[Any, int]] = []
        for index in range(self.offset, min(self.offset + limit, len(self.items))):
            one = self.items[index]
            due_ns = self.clock.run_start_ns + one.time_ns
            if due_ns > now_ns:
                if not found:
                    self.clock.sleep((due_ns - now_ns) / 1e9)
                break
            found.append((one.item, due_ns))
        self.offset += len(found)
        return [item for item, _ in found], [due_ns for _, due_ns in found]

    def close(self) -> None:
        """Nothing is held."""


def given(flow: str, source: str, splits: Sequence[str], items: Items) -> Given:
    """The items of a source: of each split by its name, or of all of them, which then take turns."""
    where = f'inputs of source "{source}" of flow "{flow}"'
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise FlowError(f"{where}: give a list of items, not {items!r}")
    if isinstance(items, Mapping):
        unknown = [split for split in items if split not in splits]
        if unknown:
            known = ", ".join(map(repr, splits))
            raise FlowError(f"{where}: there is no split {unknown[0]!r}; its splits are {known}")
        parts = {split: _timed(items.get(split, ()), where) for split in splits}
    else:
        every = _timed(items, where)
        parts = {split: every[number :: len(splits)] for number, split in enumerate(splits)}
    return Given(source, parts)


def _timed(items: Iterable[Any], where: str) -> list[At]:
    """An item without a time comes together with the one before it."""
    found: list[At] = []
    now_ns = 0
    for item in items:
        one = item if isinstance(item, At) else At(now_ns, item)
        if one.time_ns < now_ns:
            raise FlowError(
                f"{where}: {one.item!r} comes before the item that stands before it; sort by time"
            )
        now_ns = one.time_ns
        found.append(one)
    if any(isinstance(one.item, Record) for one in found):  # a source has records, or none
        found = [one if isinstance(one.item, Record) else At(one.time_ns, Record(one.item)) for one in found]
    return found
