"""How the constraints of a running flow are kept: a look at the end of each of their windows."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.flow.graph import Constraint
from penstock.stats.snapshot import Snapshot

if TYPE_CHECKING:
    from penstock.stats.snapshot import ConstraintSpec


class Looking(Protocol):
    """What is asked of a view of the flow."""

    def constraints(self) -> tuple[Constraint, ...]:
        """Those of the flow, with the bounds they have now."""
        ...

    def snapshot(self, interval_s: float) -> Snapshot:
        """What was measured since the last call."""
        ...


LEAST_SAMPLES = 100
"""Fewer items than these make percentiles that nobody should rely on."""


@dataclass(frozen=True, slots=True)
class ConstraintState:
    """A constraint, what its last interval showed, and how many of all intervals held it.

    An interval is as long as the constraint's window. `mean_ms` is what is held against `bound_ms`; the
    percentiles are those of single items that were followed from the beginning of the sequence to its end,
    None if they were fewer than `LEAST_SAMPLES`. `held` and `share_held` are None as long as nothing was
    measured.
    """

    name: str
    sequence: tuple[str, ...]
    bound_ms: float
    window_s: float
    mean_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    held: bool | None = None
    share_held: float | None = None
    intervals: int = 0


@dataclass(slots=True)
class _Count:
    judged: int = 0
    held: int = 0


class ConstraintWatch:
    """Looks at a flow whenever a window of its constraints is over; all of them have the same window."""

    def __init__(self, view: Looking, clock: Callable[[], float] = time.monotonic) -> None:
        self._view = view
        self._clock = clock
        self._since_s = clock()
        self._counts: dict[str, _Count] = {}
        self._last: dict[str, ConstraintSpec] = {}
        self._lock = threading.Lock()  # the monitor looks, others ask

    def look(self) -> None:
        """To be called often: nothing happens before a window is over."""
        constraints = self._view.constraints()
        passed_s = self._clock() - self._since_s
        if not constraints or passed_s < constraints[0].window_s:
            return
        self._since_s += passed_s
        snapshot = self._view.snapshot(passed_s)
        with self._lock:
            for one in snapshot.constraints:
                self._last[one.name] = one
                count = self._counts.setdefault(one.name, _Count())
                if one.held is not None:
                    count.judged += 1
                    count.held += one.held

    def states(self) -> list[ConstraintState]:
        """Every constraint as it was at the end of its last interval, with the bound it has now."""
        with self._lock:
            return [
                ConstraintState(
                    name=one.name,
                    sequence=one.sequence,
                    bound_ms=one.latency_ms,
                    window_s=one.window_s,
                    mean_ms=None if last is None else last.mean_ms,
                    p95_ms=last.p95_ms if last is not None and _enough(last) else None,
                    p99_ms=last.p99_ms if last is not None and _enough(last) else None,
                    held=None if last is None else last.held,
                    share_held=count.held / count.judged if count.judged else None,
                    intervals=count.judged,
                )
                for one in self._view.constraints()
                for last, count in [(self._last.get(one.name), self._counts.get(one.name, _Count()))]
            ]


def _enough(seen: "ConstraintSpec") -> bool:
    return (seen.samples or 0) >= LEAST_SAMPLES
