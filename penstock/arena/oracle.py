"""The oracle: the cheapest replicas per interval that hold the bounds wherever any number of replicas can.

It is found by search on the simulated engine. Interval after interval the cheapest replicas that hold it are
looked for (foresight.py), starting from those of the interval before in proportion to the load. A few ways
through time are kept side by side: those that have held most, and of these the cheapest, and dearer ones only
if less is left waiting at their end. So a queue that is left to the next interval is paid for where that is
cheapest.

What it does not pay: changes. Its replicas are there when they are needed. Where every change restarts the
flow, the intervals of a restart are lost; there the oracle never changes anything and has the cheapest
constant replicas that hold as much as any could.

Lifetimes are fixed for the whole run: those of the flow and, where shipping costs a tenth of the work or
more, also some longer ones; the run that holds most for the least counts.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from penstock.arena.descent import Vector, cheapest
from penstock.arena.foresight import NextInterval, Path
from penstock.arena.moments import Moment, moment_of
from penstock.sim.engine import SimulatedEngine

if TYPE_CHECKING:
    from penstock.sim.model import FlowModel

WIDTH = 2
LIFETIME_SHARES = (0.1, 0.25)
"""Longer lifetimes that are tried, as shares of the tightest bound."""
_DEAR_SHIPPING = 0.1
_OWES_AS_MUCH = 0.8
_HALF = 0.5


class Plan(msgspec.Struct, frozen=True):
    """What the oracle does; `attempts` is how many intervals were simulated to find it."""

    moments: list[Moment]
    lifetimes_ms: dict[str, float]
    attempts: int

    @property
    def held(self) -> int:
        return sum(moment.held for moment in self.moments)

    @property
    def cost_s(self) -> float:
        """Replica-seconds."""
        return sum(moment.total * moment.length_s for moment in self.moments)

    @property
    def core_s(self) -> float:
        return sum(moment.cores * moment.length_s for moment in self.moments)


def find_plan(flow: FlowModel, seed: int, *, width: int = WIDTH) -> Plan:
    """Search; the same flow and seed give the same plan."""
    plans = [_plan_with(model, seed, width) for model in _lifetimes_to_try(flow)]
    best = min(plans, key=lambda plan: (-plan.held, plan.cost_s, plan.core_s))
    return msgspec.structs.replace(best, attempts=sum(plan.attempts for plan in plans))


def _plan_with(flow: FlowModel, seed: int, width: int) -> Plan:
    restarts = flow.cluster.restart_s is not None
    # Where nothing may change, this only tells where to begin.
    moments, attempts = _free_changes(flow, seed, 1 if restarts else width)
    if restarts and moments:
        moments, more = _no_changes(flow, seed, moments)
        attempts += more
    return Plan(moments, {stream.name: stream.lifetime_ms for stream in flow.streams}, attempts)


def _free_changes(flow: FlowModel, seed: int, width: int) -> tuple[list[Moment], int]:
    start = tuple(task.replicas for task in flow.tasks if task.elastic)
    paths, attempts = [Path(SimulatedEngine(flow, seed), start)], 0
    while paths[0].engine.now_s < flow.seconds - 1e-9:
        ways = []
        for path in paths:
            following = NextInterval(path)
            ways += following.ways(_guess(flow, path))
            attempts += following.attempts
        paths = _best(ways, width)
    past = paths[0].past
    return ([] if past is None else past.moments()), attempts


def _best(ways: list[Path], width: int) -> list[Path]:
    most = max(way.held for way in ways)
    kept: list[Path] = []
    for way in sorted(ways, key=lambda way: (way.cost_s, way.waiting)):
        if way.held == most and not any(_owes_as_much(way, other) for other in kept):
            kept.append(way)
    solid = [way for way in kept[width:] if not way.overspent]
    return kept[:width] + solid[: all(way.overspent for way in kept[:width])]


def _owes_as_much(way: Path, other: Path) -> bool:
    """As much in queues, and in windows that cover several intervals; what is not half spent is no matter."""
    waits = way.waiting >= _OWES_AS_MUCH * other.waiting
    return waits and max(_HALF, way.spent) >= _OWES_AS_MUCH * max(_HALF, other.spent)


def _guess(flow: FlowModel, path: Path) -> Vector:
    """The replicas of now in proportion to what will be due."""
    now, length = path.engine.now_s, flow.interval_s
    due, was_due = _due(flow, now, now + length), _due(flow, max(0.0, now - length), now)
    grows = due / was_due if was_due > 0.0 else 1.0
    elastic = [task.bounds for task in flow.tasks if task.elastic]
    return tuple(
        min(max(round(replicas * grows), low), high)
        for replicas, (low, high) in zip(path.vector, elastic, strict=True)
    )


def _due(flow: FlowModel, begin_s: float, end_s: float) -> float:
    loads = [task.load for task in flow.tasks if task.load is not None]
    return sum(load.area_until(end_s) - load.area_until(begin_s) for load in loads)


@dataclasses.dataclass(frozen=True, slots=True)
class _Constant:
    vector: Vector
    moments: list[Moment]

    @property
    def held(self) -> int:
        return sum(moment.held for moment in self.moments)


def _no_changes(flow: FlowModel, seed: int, free: list[Moment]) -> tuple[list[Moment], int]:
    """The cheapest constant replicas that hold as many intervals as any that are tried."""
    tasks = [task for task in flow.tasks if task.elastic]
    highest = tuple(task.bounds[1] for task in tasks)
    tried: dict[Vector, _Constant] = {}

    def attempt(vector: Vector) -> _Constant:
        if vector not in tried:
            tried[vector] = _Constant(vector, _constant(flow, seed, vector))
        return tried[vector]

    best = attempt(tuple(max(moment.replicas[task.name] for moment in free) for task in tasks))
    most = max(best.held, attempt(highest).held)
    while best.held < most and best.vector != highest:
        best = attempt(
            tuple(min(top, n + max(1, n // 4)) for n, top in zip(best.vector, highest, strict=True))
        )
    low = tuple(task.bounds[0] for task in tasks)
    most = max(one.held for one in tried.values())
    best = next(one for one in tried.values() if one.held == most)
    best = cheapest(best, attempt, good=lambda one: one.held >= most, lowest=lambda _: low, highest=highest)
    return best.moments, len(tried) * len(free)


def _constant(flow: FlowModel, seed: int, vector: Vector) -> list[Moment]:
    engine = SimulatedEngine(flow, seed)
    engine.place(dict(zip([task.name for task in flow.tasks if task.elastic], vector, strict=True)))
    moments = []
    while engine.observe() is not None:
        assert engine.last is not None
        moments.append(moment_of(engine.last))
    return moments


def _lifetimes_to_try(flow: FlowModel) -> list[FlowModel]:
    bounds_ms = [constraint.latency_ms for constraint in flow.constraints]
    if not bounds_ms or not _shipping_is_dear(flow):
        return [flow]
    return [
        flow,
        *(
            dataclasses.replace(
                flow,
                streams=tuple(
                    dataclasses.replace(stream, lifetime_ms=share * min(bounds_ms)) for stream in flow.streams
                ),
            )
            for share in LIFETIME_SHARES
        ),
    ]


def _shipping_is_dear(flow: FlowModel) -> bool:
    """Whether envelopes cost an elastic task much of its service time."""
    elastic = {task.name: task.service_s for task in flow.tasks if task.elastic}
    return any(
        stream.lifetime_ms == 0.0
        and stream.costs.send_envelope_s + stream.costs.receive_envelope_s > _DEAR_SHIPPING * service_s
        for stream in flow.streams
        for name, service_s in elastic.items()
        if name in (stream.sender, stream.receiver)
    )
