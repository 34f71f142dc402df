"""The intervals of a flow in their order: figures over time as columns, and every interval as it was."""

import threading
from collections import deque
from dataclasses import dataclass, field

import msgspec

from penstock.dashboard.columns import Key, Value, keys_of, row_of, shape_of
from penstock.policy.held import Judge
from penstock.stats.snapshot import Snapshot, encode_snapshot


class OtherTasksError(ValueError):
    """An interval of a flow with other tasks than those before it."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, as it is told: `at_s` is when it ended."""

    number: int
    at_s: float
    stood_still_ms: float | None
    snapshot: msgspec.Raw


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the intervals from number `first` on, a list for each key; `times` are when they ended."""

    first: int
    times: list[float]
    keys: list[Key]
    values: list[list[Value]]


@dataclass
class Timeline:
    """Holds the last `kept` intervals, all of them for None; one thread adds, others read."""

    kept: int | None = None
    keys: list[Key] = field(default_factory=list)
    latest: Snapshot | None = None
    _rows: deque[list[Value]] = field(default_factory=deque)
    _told: deque[tuple[float, float | None, bytes]] = field(default_factory=deque)
    _first: int = 0
    _shape: tuple[object, ...] = ()
    _judge: Judge = field(default_factory=Judge)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self,
        snapshot: Snapshot,
        *,
        at_s: float,
        stood_still_ms: float | None = None,
        planned: dict[str, int] | None = None,
        encoded: bytes | None = None,
    ) -> None:
        """The next interval; `encoded` if its text is there already."""
        shape = shape_of(snapshot)
        if self.keys and shape != self._shape and keys_of(snapshot) != self.keys:
            raise OtherTasksError(f"other tasks, streams or constraints ({', '.join(snapshot.tasks)})")
        row = row_of(snapshot, self._judge.verdicts(snapshot), planned or {}, stood_still_ms)
        text = encode_snapshot(snapshot) if encoded is None else encoded
        with self._lock:
            if not self.keys:
                self.keys, self._shape = keys_of(snapshot), shape
            self.latest = snapshot
            self._rows.append(row)
            self._told.append((at_s, stood_still_ms, text))
            if self.kept is not None and len(self._rows) > self.kept:
                self._rows.popleft()
                self._told.popleft()
                self._first += 1

    @property
    def end(self) -> int:
        """The number that the next interval will have."""
        return self._first + len(self._rows)

    def columns(self, first: int = 0) -> Columns:
        """From that number on, or from the oldest that is held."""
        with self._lock:
            skipped = max(0, first - self._first)
            rows = list(self._rows)[skipped:]
            times = [at_s for at_s, _, _ in list(self._told)[skipped:]]
            begin = self._first + skipped
        values = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in self.keys]
        return Columns(first=begin, times=times, keys=self.keys, values=values)

    def interval(self, number: int) -> Interval | None:
        """As it was; None if it is not held."""
        with self._lock:
            if not self._first <= number < self._first + len(self._told):
                return None
            at_s, stood_still_ms, text = self._told[number - self._first]
        return Interval(number=number, at_s=at_s, stood_still_ms=stood_still_ms, snapshot=msgspec.Raw(text))
