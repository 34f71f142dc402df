"""Whether constraints are held: each is judged over its own window (thesis, section 4.2).

A constraint bounds the mean latency of the items of any `window_s` seconds. Snapshots come at the intervals
of whoever looks. So the verdict at the end of an interval is over the last intervals that cover the window,
each of them counting by its items; one that is as long as the window, or longer, is judged by itself.
Percentiles do not add up, but items do: a p95 is held as long as at most one of twenty of the items that were
followed was over the bound. Where nobody has counted those, the largest percentile of an interval is judged.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from penstock.policy.ds2_rates import observed_output_per_s
from penstock.policy.measured import finite, sequence_latency_ms
from penstock.stats.snapshot import ConstraintSpec, Snapshot

COVERED = 0.9
"""Intervals of a clock are never exact: so much of a window is the whole of it."""
_MAY_BE_LATE = {"p95": 0.05, "p99": 0.01}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`value_ms` is what was judged. `held` is None where nothing was sent, or the percentile is not known; a
    mean that was not measured although items were sent is not held."""

    value_ms: float | None
    held: bool | None


@dataclass(frozen=True, slots=True)
class _Seen:
    interval_s: float
    value_ms: float | None
    items: float
    sent: bool
    samples: int
    late: int | None


class Judge:
    """Takes the snapshots of a flow in their order. A bound that changes begins a new window."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[_Seen]] = {}
        self._bounds: dict[str, tuple[float, str]] = {}

    def verdicts(self, snapshot: Snapshot) -> dict[str, Verdict]:
        """Of every constraint, at the end of this interval."""
        return {one.name: self._verdict(snapshot, one) for one in snapshot.constraints}

    def judged(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with its verdicts."""
        found = self.verdicts(snapshot)
        constraints = [
            msgspec.structs.replace(
                one,
                mean_ms=found[one.name].value_ms if one.statistic == "mean" else None,
                held=found[one.name].held,
            )
            for one in snapshot.constraints
        ]
        return msgspec.structs.replace(snapshot, constraints=constraints)

    def _verdict(self, snapshot: Snapshot, constraint: ConstraintSpec) -> Verdict:
        bound = (constraint.latency_ms, constraint.statistic)
        if self._bounds.get(constraint.name) != bound:
            self._bounds[constraint.name] = bound
            self._seen[constraint.name] = deque()
        seen = self._seen[constraint.name]
        seen.append(_look(snapshot, constraint))
        _forget(seen, constraint.window_s)
        known = [(one.value_ms, one.items) for one in seen if one.value_ms is not None]
        by_mean = constraint.statistic == "mean"
        if not known:
            return Verdict(None, False if by_mean and any(one.sent for one in seen) else None)
        if by_mean:
            items = sum(weight for _, weight in known)
            value_ms = sum(value * weight for value, weight in known) / items
            return Verdict(value_ms, value_ms <= constraint.latency_ms)
        value_ms = max(value for value, _ in known)
        late = _share_late([one for one in seen if one.samples])
        if late is None:
            return Verdict(value_ms, value_ms <= constraint.latency_ms)
        return Verdict(value_ms, late <= _MAY_BE_LATE[constraint.statistic])


def _share_late(seen: Sequence[_Seen]) -> float | None:
    """Of the items that were followed; None if nobody counted them."""
    if not seen or any(one.late is None for one in seen):
        return None
    return sum(one.late or 0 for one in seen) / sum(one.samples for one in seen)


def _look(snapshot: Snapshot, constraint: ConstraintSpec) -> _Seen:
    last = constraint.sequence[-1].rpartition("->")[2]
    items = finite(snapshot.tasks[last].processed_total)
    value_ms = {"p95": constraint.p95_ms, "p99": constraint.p99_ms}.get(constraint.statistic)
    if constraint.statistic == "mean":
        value_ms = sequence_latency_ms(snapshot, constraint)
    # Items that were timed and not counted are some, too.
    return _Seen(
        snapshot.interval_s,
        finite(value_ms),
        max(1.0, items or 0.0),
        _sends(snapshot),
        constraint.samples or 0,
        constraint.late,
    )


def _forget(seen: deque[_Seen], window_s: float | None) -> None:
    """Keep the fewest of the last intervals that cover the window."""
    if window_s is None:
        while len(seen) > 1:
            seen.popleft()
        return
    while sum(one.interval_s for one in seen) - seen[0].interval_s >= COVERED * window_s:
        seen.popleft()


def _sends(snapshot: Snapshot) -> bool:
    """Whether a source sent something, or should have."""
    sources = [task for task in snapshot.tasks.values() if task.kind == "source"]
    return any(
        finite(task.rate_total) or observed_output_per_s(task, snapshot.interval_s) for task in sources
    )
