"""What is ordered: which of the wanted replicas are worth a change now."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.policy.decision import Reason
from penstock.policy.penstock.learning import held, share_of
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.planning import Wanted
from penstock.policy.penstock.price import Order, Prices
from penstock.policy.penstock.servers import servers
from penstock.stats.snapshot import Snapshot

_FAR_TOO_FEW = 1.25


@dataclass(frozen=True, slots=True)
class Ordering:
    """Of a snapshot and what is wanted."""

    snapshot: Snapshot
    wanted: Wanted
    prices: Prices
    parameters: PenstockParameters

    @property
    def _is_priced(self) -> bool:
        return self.parameters.price == "on"

    def awaited(self) -> Order | None:
        """An order that is on its way and is to be repeated.

        Another is better only where this is much too small and young.
        """
        order, delay_s = self.prices.order, self.prices.delay_s
        if order is None or not self._is_priced:
            return None
        if delay_s is None or order.age_s > 0.5 * delay_s:
            return order
        need = self.wanted.need.replicas
        outrun = any(
            need[name] > _FAR_TOO_FEW * order.replicas.get(name, need[name])
            for name in servers(self.snapshot)
        )
        return None if outrun else order

    def changed(self, now: Mapping[str, int]) -> dict[str, int]:
        """More where more is needed; only where none is, fewer where fewer have been enough.

        As long as those of now would do if waits were somewhat shorter, the need may be luck.
        """
        need = self.wanted.need.replicas
        more = {name: need[name] for name in servers(self.snapshot) if need[name] > now[name]}
        if more:
            waits = self._is_priced and (self._is_too_dear() or not self.wanted.is_short)
            return {} if waits else more
        return self._fewer(now)

    def _is_too_dear(self) -> bool:
        """Where the flow stands still for a change, only what is broken, and will be, is changed."""
        interval_s, prices = self.snapshot.interval_s, self.prices
        if prices.cost_s <= 0.5 * interval_s:
            return False
        if prices.since_change_s < prices.cost_s + 2.0 * interval_s:
            return True
        return all(held(self.snapshot, one) is not False for one in self.snapshot.constraints)

    def _fewer(self, now: Mapping[str, int]) -> dict[str, int]:
        shares = [share_of(one, self.parameters) for one in self.snapshot.constraints]
        if self._is_priced and not self.prices.may_save(max(shares, default=self.parameters.share)):
            return {}
        found = {}
        for name in servers(self.snapshot):
            fewest: int | None = self.wanted.enough.replicas[name]
            if self._is_priced:
                fewest = self.prices.fewest(name, self.snapshot.interval_s, self.wanted.expected)
            if fewest is not None and fewest < now[name]:
                found[name] = fewest
        saved = sum(now[name] - count for name, count in found.items())
        if self._is_priced and not self.prices.is_worth(
            saved, sum(now[name] for name in servers(self.snapshot))
        ):
            return {}
        return found

    def reasons(self, now: Mapping[str, int], changed: Mapping[str, int]) -> list[Reason]:
        """Why, in words; first what no number of replicas can do."""
        infeasible = [
            Reason(rule="infeasible", constraint=name, why=f"{name} cannot be kept: {needed}")
            for name, needed in self.wanted.need.infeasible.items()
        ]
        return [*infeasible, *(self._reason(name, now[name], count) for name, count in changed.items())]

    def _by(self) -> str:
        seasons = [one.season for one in self.wanted.forecasts.values() if one.season is not None]
        if seasons:
            return f", as {seasons[0] * self.snapshot.interval_s:.3g} s before"
        rising = any(one.trend for one in self.wanted.forecasts.values())
        return ", going by the trend" if rising else ""

    def _reason(self, name: str, now: int, count: int) -> Reason:
        expected = sum(one.expected_per_s for one in self.wanted.forecasts.values())
        planned = sum(one.planned_per_s for one in self.wanted.forecasts.values())
        if count > now:
            why = f"{expected:.4g} items/s are expected{self._by()}"
            if planned > 1.05 * expected:
                why += f", and with the surprises of late {planned:.4g} are planned for"
            why += f": that takes {count} replicas of {name}, and it has {now}"
        else:
            why = f"{count} replicas of {name} have been enough for a while, with something to spare"
        return Reason(
            rule="more" if count > now else "fewer",
            task=name,
            before=now,
            after=count,
            inputs={"expected_per_s": expected, "planned_per_s": planned},
            prediction={f"{one}_ms": ms for one, ms in self.wanted.need.predicted_ms.items()},
            why=why,
        )
