"""Other replicas under load: 2 -> 4 -> 2, by an epoch mark, at a boundary, and by a stop and a start.

Which keys move is seen from the replica that each item met: a group of keys that met one replica before a
change and another one after it has moved.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy
from numpy.typing import NDArray

from penstock.bench import state_flow
from penstock.bench.baselines import bench_session
from penstock.bench.boundary import gap_ms
from penstock.bench.harness import Check, Effort, median
from penstock.bench.state_count import SLOTS
from penstock.bench.state_disk import StateFiles
from penstock.bench.telling import tell, turns
from penstock.spark.job import Job
from penstock.testing import Ledger
from penstock.testing.arrivals import Arrivals, Entries
from penstock.wire.keys import KEY_GROUPS

KEYS: Final = 200_000
MANY_KEYS: Final = 1_000_000
STEPS: Final = ((2, 4), (4, 2))
MARK, BOUNDARY, RESTART = "by_a_mark", "at_a_boundary", "stop_and_start"
CONTESTANTS: Final = (MARK, BOUNDARY, RESTART)
STAYING_MORE_MS: Final = 50.0
MOVING_MORE_MS: Final = 1000.0
_SETTLE_S: Final = 1.0
_AFTER_S: Final = 0.5
_BEFORE_S: Final = 0.1
"""What came due shortly before a change is under way when it begins."""
_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Length:
    """How many turns, and the pause before, between and after the changes."""

    turns: int
    pause_s: float


LENGTHS: Final = {Effort.QUICK: Length(1, 2.5), Effort.FULL: Length(3, 5.0)}


@dataclass(frozen=True, slots=True)
class Change:
    """From when to when it lasted, for whoever asked for it."""

    name: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What items saw of a change; unknown if none of the kind came."""

    steady_p99_ms: float | None
    staying_more_p99_ms: float | None
    moving_more_p99_ms: float | None
    moving_worst_ms: float | None
    silence_ms: float | None
    took_ms: float
    late_s: float
    """From the call until the last item came due that was 50 ms later than is usual."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run; what is usual is seen between `begin_ns` and the first change."""

    begin_ns: int
    changes: tuple[Change, ...]
    entries: Entries
    lost: int
    duplicated: int
    counted_wrong: int
    memory_bytes_per_key: float | None
    checkpoint_bytes: int


def rescale(effort: Effort) -> tuple[dict[str, Any], list[Check]]:
    """All in turn, after that a million keys by a mark; who is first in a turn is last in the next."""
    length = LENGTHS[effort]
    bench_session(SLOTS)
    taken: dict[str, list[Turn]] = {name: [] for name in CONTESTANTS}
    for number in turns(length.turns):
        for name in CONTESTANTS if number % 2 == 0 else CONTESTANTS[::-1]:
            tell(f"  rescale, {name.replace('_', ' ')}, {KEYS:,} keys")
            taken[name].append(run(name, KEYS, length.pause_s))
    many = None
    if effort is Effort.FULL:
        tell(f"  rescale, by a mark, {MANY_KEYS:,} keys")
        many = run(MARK, MANY_KEYS, length.pause_s)
    return summarise(taken, many, length.pause_s)


def run(name: str, keys: int, pause_s: float) -> Turn:
    """One run of a contestant."""
    with Ledger() as ledger, tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        place = Path(directory)
        ways = _Ways(name, ledger, keys, place)
        job = ways.begin(STEPS[0][0])
        state_flow.await_filled(job, keys)
        if name == BOUNDARY:
            job.boundary()  # as marks have, it has written all keys before the change
        memory = state_flow.memory_per_key(job, keys)
        time.sleep(_SETTLE_S)
        steady_ns = time.monotonic_ns()
        time.sleep(pause_s)
        changes = []
        for before, after in STEPS:
            begin_ns = time.monotonic_ns()
            job = ways.change(job, after)
            changes.append(Change(f"{before}_to_{after}", begin_ns, time.monotonic_ns()))
            time.sleep(pause_s)
        checkpoint_bytes = StateFiles(place / "checkpoint").whole_bytes()
        job.stop()
        entries = Arrivals(ledger).new()
        wrong = state_flow.counted_wrong(job, entries, keys)
    return Turn(
        steady_ns,
        tuple(changes),
        entries,
        entries.lost(),
        entries.duplicated(),
        wrong,
        memory,
        checkpoint_bytes,
    )


class _Ways:
    """How a contestant begins, and how it comes by other replicas."""

    def __init__(self, name: str, ledger: Ledger, keys: int, place: Path) -> None:
        self._name, self._ledger, self._keys, self._place = name, ledger, keys, place

    def begin(self, replicas: int) -> Job:
        flow = state_flow.flow(self._ledger, self._keys, self._place, replicas, elastic=True)
        return state_flow.started(flow, self._place, marks=self._name != BOUNDARY)

    def change(self, job: Job, replicas: int) -> Job:
        """Over when items come out again."""
        if self._name != RESTART:
            job.set_active("count", replicas)
            return job
        job.stop()
        reader = Arrivals(self._ledger)
        reader.new()
        after = self.begin(replicas)
        state_flow.within(after, lambda: len(reader.new()) > 0, 60.0)
        return after


def seen(turn: Turn, groups: NDArray[numpy.int64], pause_s: float) -> dict[str, Seen]:
    """Of each change, what the items around it tell."""
    first_ns = turn.changes[0].begin_ns - round(_BEFORE_S * _NS)
    usual_ms = _p99_ms(turn.entries.due_between(turn.begin_ns, first_ns))
    return {change.name: _seen(turn.entries, change, groups, pause_s, usual_ms) for change in turn.changes}


def _seen(
    entries: Entries, change: Change, groups: NDArray[numpy.int64], pause_s: float, usual: float | None
) -> Seen:
    begin_ns = change.begin_ns - round(_BEFORE_S * _NS)
    end_ns = change.end_ns + round(_AFTER_S * _NS)
    before = entries.due_between(change.begin_ns - round(pause_s * _NS), begin_ns - round(_AFTER_S * _NS))
    after = entries.due_between(end_ns, change.end_ns + round(pause_s * _NS))
    meanwhile = entries.due_between(begin_ns, end_ns)
    old, new = _owners(before, groups), _owners(after, groups)
    moves = (old >= 0) & (new >= 0) & (old != new)
    stays = (old >= 0) & (old == new)
    group = state_flow.groups_of(meanwhile, groups)
    moving = meanwhile.where(moves[group])
    staying = meanwhile.where(stays[group])
    later = entries.due_between(begin_ns, change.end_ns + round(pause_s * _NS))
    late = later.due_ns[later.latency_ms() > (usual or 0.0) + STAYING_MORE_MS]
    return Seen(
        usual,
        _less(_p99_ms(staying), usual),
        _less(_p99_ms(moving), usual),
        float(moving.latency_ms().max()) if len(moving) else None,
        gap_ms(entries.arrived_ns, change.begin_ns, change.end_ns + round(pause_s * _NS)),
        (change.end_ns - change.begin_ns) * 1e-6,
        max(0.0, float(late.max() - change.begin_ns) / _NS) if len(late) else 0.0,
    )


def _owners(entries: Entries, groups: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """The replica that each group of keys met; -1 of those that were not seen."""
    found = numpy.full(KEY_GROUPS, -1, dtype=numpy.int64)
    found[state_flow.groups_of(entries, groups)] = entries.mark
    return found


def _p99_ms(entries: Entries) -> float | None:
    return float(numpy.percentile(entries.latency_ms(), 99)) if len(entries) else None


def _less(value: float | None, usual: float | None) -> float | None:
    return None if value is None or usual is None else value - usual


def summarise(
    taken: dict[str, list[Turn]], many: Turn | None, pause_s: float
) -> tuple[dict[str, Any], list[Check]]:
    """Of the two changes of a turn the worse one counts, and of the turns the median."""
    groups = state_flow.groups_by_key(KEYS)
    found = {name: [seen(turn, groups, pause_s) for turn in ran] for name, ran in taken.items()}
    figures: dict[str, Any] = {"keys": KEYS, "items_per_s": state_flow.RATE_PER_S}
    for name, of_turns in found.items():
        figures[name] = _figures(of_turns, taken[name])
    if many is not None:
        of_many = [seen(many, state_flow.groups_by_key(MANY_KEYS), pause_s)]
        figures["by_a_mark_a_million_keys"] = _figures(of_many, [many])
    everything = [*(turn for ran in taken.values() for turn in ran), *([] if many is None else [many])]
    checks = [
        Check(
            "items of keys that stay, p99, ms more",
            worse(found[MARK], "staying_more_p99_ms"),
            "<=",
            STAYING_MORE_MS,
        ),
        Check(
            "items of keys that move, p99, ms more",
            worse(found[MARK], "moving_more_p99_ms"),
            "<=",
            MOVING_MORE_MS,
        ),
        Check("rescale: items lost", sum(turn.lost for turn in everything), "==", 0),
        Check("rescale: items duplicated", sum(turn.duplicated for turn in everything), "==", 0),
        Check("rescale: counted wrong", sum(turn.counted_wrong for turn in everything), "==", 0),
    ]
    return figures, checks


def worse(found: Sequence[dict[str, Seen]], part: str) -> float | None:
    """The median over the turns of the worse of their changes; unknown if one of them is."""
    values = []
    for of_turn in found:
        both = [getattr(one, part) for one in of_turn.values()]
        if any(value is None for value in both):
            return None
        values.append(max(both))
    return median(values)


def _figures(found: Sequence[dict[str, Seen]], ran: Sequence[Turn]) -> dict[str, Any]:
    """Every part by change, a value for each turn."""
    parts = tuple(Seen.__dataclass_fields__)
    changes = {
        name: {part: [getattr(of_turn[name], part) for of_turn in found] for part in parts}
        for name in (found[0] if found else {})
    }
    return {
        **changes,
        "memory_bytes_per_key": [turn.memory_bytes_per_key for turn in ran],
        "checkpoint_bytes": [turn.checkpoint_bytes for turn in ran],
    }
