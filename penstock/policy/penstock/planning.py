"""What is wanted: the replicas that keep the constraints with what is planned for."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from penstock.policy.keep import current_parallelism
from penstock.policy.penstock.choice import Choice, choose, keeps
from penstock.policy.penstock.demand import demand, owed_per_s
from penstock.policy.penstock.forecast import Forecast, History, forecast
from penstock.policy.penstock.learning import share_of
from penstock.policy.penstock.memory import Memory
from penstock.policy.penstock.model import Model
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.stats.snapshot import Snapshot

_BAND = 1.25
"""So much longer may waits be before what was found to be enough is too little, and so much longer than
planned before more are ordered: between the two nothing changes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is needed now, what would be enough even if waits were longer, and what they are planned for.

    `is_short`: the replicas of now would be too few even if waits were shorter.
    """

    need: Choice
    enough: Choice
    is_short: bool
    forecasts: Mapping[str, Forecast]

    @property
    def plan(self) -> dict[str, float]:
        """Items per second by source."""
        return {name: one.planned_per_s for name, one in self.forecasts.items()}


def wanted(snapshot: Snapshot, memory: Memory, parameters: PenstockParameters) -> Wanted:
    """Raises UnknownError where something was not measured."""
    ahead = memory.prices.ahead(snapshot.interval_s)
    quantile = max((margin.quantile for margin in memory.margins.values()), default=parameters.share)
    forecasts = {
        name: _forecast(history, snapshot.interval_s, ahead, quantile, parameters)
        for name, history in memory.sources.items()
    }
    model = Model(snapshot, memory, parameters)
    owed = owed_per_s(snapshot, parameters.drain_s)
    comes = demand(
        snapshot,
        memory.counts,
        {name: one.expected_per_s + owed.get(name, 0.0) for name, one in forecasts.items()},
    )
    drained = model.drained_per_s(comes)
    planned = {name: one.planned_per_s + owed.get(name, 0.0) for name, one in forecasts.items()}
    waits = model.waits(demand(snapshot, memory.counts, planned, drained))
    queues = model.queues(waits, comes)
    sigmas = {one.name: NormalDist().inv_cdf(share_of(one, parameters)) for one in snapshot.constraints}
    return Wanted(
        need=_within_limits(snapshot, choose(queues, model.bounds(waits, sigmas, 1.0))),
        enough=_within_limits(snapshot, choose(queues, model.bounds(waits, sigmas, _BAND))),
        is_short=not keeps(queues, model.bounds(waits, sigmas, 1.0 / _BAND), current_parallelism(snapshot)),
        forecasts=forecasts,
    )


def _forecast(
    history: History, interval_s: float, ahead: int, quantile: float, parameters: PenstockParameters
) -> Forecast:
    quantile_or_none = quantile if parameters.headroom == "on" else None
    return forecast(history, interval_s, ahead, quantile_or_none, is_last=parameters.forecast == "off")


def _within_limits(snapshot: Snapshot, choice: Choice) -> Choice:
    """Tasks that nothing comes to get the fewest they may have."""
    replicas = {
        name: task.within_limits(choice.replicas.get(name, 1))
        for name, task in snapshot.elastic_tasks().items()
    }
    return Choice(replicas, choice.predicted_ms, choice.infeasible)
