"""What is wanted: the replicas that keep the constraints with what is planned for.

Two things break a bound: luck, at any time, and a load that comes as a surprise, sometimes. Both at once are
rare. So the bound is kept with luck at the load that is expected, and at the load that is planned for with as
much luck as is left over: if that comes in a share f of the intervals, z is the quantile 1 - (1 - share) / f.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import msgspec

from penstock.policy.keep import current_parallelism
from penstock.policy.penstock.choice import Choice, choose, keeps
from penstock.policy.penstock.demand import demand, owed_per_s
from penstock.policy.penstock.forecast import Forecast, History, forecast
from penstock.policy.penstock.learning import share_of
from penstock.policy.penstock.memory import Memory
from penstock.policy.penstock.model import Model
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.price import Prices
from penstock.policy.penstock.proved import MANY
from penstock.stats.snapshot import Snapshot

_BAND = 1.25
"""So much longer may waits be before what was found to be enough is too little. Where replicas come within
an interval, or those of now have borne as much (proved.py), there is time to see, and they may be so
much longer before more are ordered, too; and SOLID times as long where that is known of many intervals. Then
head-room needs no more either, whatever an item costs while fewer come: these share no envelopes."""
_SOLID = 1.6


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is needed now, what would be enough even if waits were longer, and what they are planned for.

    `is_short`: the replicas of now would be too few even if waits were shorter. `drains`: some of what is
    needed is for backlogs.
    """

    need: Choice
    enough: Choice
    is_short: bool
    drains: bool
    forecasts: Mapping[str, Forecast]

    @property
    def plan(self) -> dict[str, float]:
        """Items per second by source."""
        return {name: one.planned_per_s for name, one in self.forecasts.items()}

    @property
    def expected(self) -> dict[str, float]:
        """The same without head-room."""
        return {name: one.expected_per_s for name, one in self.forecasts.items()}


def wanted(snapshot: Snapshot, memory: Memory, parameters: PenstockParameters) -> Wanted:
    """Raises UnknownError where something was not measured.

    A backlog is to be gone within an interval: each one with it is not held.
    """
    drain_s = min(parameters.drain_s, snapshot.interval_s)
    parameters = msgspec.structs.replace(parameters, drain_s=drain_s)
    ahead = memory.prices.ahead(snapshot.interval_s)
    quantile = max((margin.quantile for margin in memory.margins.values()), default=parameters.share)
    forecasts = {
        name: _forecast(history, snapshot.interval_s, memory.prices, quantile, parameters)
        for name, history in memory.sources.items()
    }
    model = Model(snapshot, memory, parameters)
    owed = owed_per_s(snapshot, parameters.drain_s)
    comes = demand(
        snapshot,
        memory.counts,
        {name: one.expected_per_s + owed.get(name, 0.0) for name, one in forecasts.items()},
        onsets=memory.onsets,
    )
    drained = model.drained_per_s(comes)
    often = max((one.surprising for one in forecasts.values()), default=0.0)
    lucky = {name: one.lucky_per_s + owed.get(name, 0.0) for name, one in forecasts.items()}
    planned = {name: one.planned_per_s + owed.get(name, 0.0) for name, one in forecasts.items()}
    cases = [_Case(model, comes, demand(snapshot, memory.counts, lucky, drained, memory.onsets), 1.0)]
    if planned != lucky:
        cases.append(
            _Case(model, comes, demand(snapshot, memory.counts, planned, drained, memory.onsets), often)
        )
    need = _choice(cases, 1.0, {})
    share = max((share_of(one, parameters) for one in snapshot.constraints), default=parameters.share)
    borne = memory.proved.borne({name: one.planned_per_s for name, one in forecasts.items()}, share)
    band = _SOLID if borne >= MANY else _BAND if borne or ahead == 1 else 1.0
    return Wanted(
        need=_within_limits(snapshot, need),
        enough=_within_limits(snapshot, _choice(cases, _BAND, need.replicas)),
        is_short=not all(one.keeps(1.0 / band) for one in (cases[:1] if borne >= MANY else cases)),
        drains=bool(drained),
        forecasts=forecasts,
    )


class _Case:
    """A load that has to be borne so often, with what comes to each task then."""

    def __init__(
        self, model: Model, expected: Mapping[str, float], comes: Mapping[str, float], often: float
    ) -> None:
        self._model = model
        self._waits = model.waits(comes)
        self._queues = model.queues(self._waits, expected)
        self._sigmas = {
            one.name: sigmas(share_of(one, model.parameters), often) for one in model.snapshot.constraints
        }

    def choose(self, slack: float, least: Mapping[str, int]) -> Choice:
        return choose(self._queues, self._model.bounds(self._waits, self._sigmas, slack), least)

    def keeps(self, slack: float) -> bool:
        bounds = self._model.bounds(self._waits, self._sigmas, slack)
        return keeps(self._queues, bounds, current_parallelism(self._model.snapshot))


def sigmas(share: float, often: float) -> float:
    """z: of a load that comes in one interval of ten, one of ten may be missed for one of a hundred."""
    return NormalDist().inv_cdf(max(0.5, 1.0 - (1.0 - share) / often)) if often > 0.0 else 0.0


def _choice(cases: Sequence[_Case], slack: float, least: Mapping[str, int]) -> Choice:
    """What bears the first and, with more, the others."""
    found = cases[0].choose(slack, least)
    for one in cases[1:]:
        more = one.choose(slack, found.replicas)
        found = Choice(more.replicas, more.predicted_ms, {**found.infeasible, **more.infeasible})
    return found


def _forecast(
    history: History, interval_s: float, prices: Prices, quantile: float, parameters: PenstockParameters
) -> Forecast:
    quantile_or_none = quantile if parameters.headroom == "on" else None
    return forecast(
        history,
        interval_s,
        prices.ahead(interval_s),
        quantile_or_none,
        until=prices.until_next(interval_s),
        slow=prices.delay_s is None,
        is_last=parameters.forecast == "off",
        may_repeat=parameters.season == "on",
    )


def _within_limits(snapshot: Snapshot, choice: Choice) -> Choice:
    """Tasks that nothing comes to get the fewest they may have."""
    replicas = {
        name: task.within_limits(choice.replicas.get(name, 1))
        for name, task in snapshot.elastic_tasks().items()
    }
    return Choice(replicas, choice.predicted_ms, choice.infeasible)
