"""What one more interval teaches: the memory after a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.policy.keep import current_parallelism
from penstock.policy.measured import finite, sequence_latency_ms
from penstock.policy.penstock.counted import Counted, counted
from penstock.policy.penstock.demand import demand, due_per_s
from penstock.policy.penstock.forecast import History, is_luck, learnt
from penstock.policy.penstock.luck import Luck
from penstock.policy.penstock.margin import Margin, after_load, after_wait, first_margin
from penstock.policy.penstock.memory import Memory, fixed_ms
from penstock.policy.penstock.model import Model
from penstock.policy.penstock.onset import onsets_per_s
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.price import Prices
from penstock.policy.penstock.proved import Proved
from penstock.policy.penstock.seen import fits_after, fixed_after, holders_after, scalability_after
from penstock.policy.penstock.servers import UnknownError
from penstock.policy.penstock.tails import tails_after
from penstock.stats.snapshot import ConstraintSpec, Snapshot

_MORE_THAN_PLANNED = 1.02
_STOPPED = 0.6


def share_of(constraint: ConstraintSpec, parameters: PenstockParameters) -> float:
    """In which share of intervals it is to be held."""
    return parameters.share if constraint.share is None else constraint.share


def held(snapshot: Snapshot, constraint: ConstraintSpec) -> bool | None:
    """Whether it was in this interval; None where that was not measured."""
    percentiles = {"p95": constraint.p95_ms, "p99": constraint.p99_ms}
    latency_ms = percentiles.get(constraint.statistic, sequence_latency_ms(snapshot, constraint))
    known = finite(latency_ms)
    return None if known is None else known <= constraint.latency_ms


def after(snapshot: Snapshot, memory: Memory, parameters: PenstockParameters) -> Memory:
    """The memory with this interval in it. One in which the flow stood still teaches only that."""
    rates = _rates(snapshot)
    still_s = _stood_still_s(snapshot, memory.counts, rates)
    prices = memory.prices.looked(current_parallelism(snapshot), snapshot.interval_s, still_s)
    if prices.pause_s > 0.0:
        return replace(memory, last=snapshot, prices=prices)
    lesson = _Lesson(snapshot, memory, parameters, rates, prices)
    counts = counted(memory.counts, snapshot, _unsettled(snapshot, memory))
    ahead = memory.prices.ahead(snapshot.interval_s)
    fixed = fixed_after(snapshot, counts, memory.fixed)
    return replace(
        memory,
        last=snapshot,
        counts=counts,
        sources={
            name: learnt(memory.sources.get(name, History()), rate, snapshot.interval_s, ahead)
            for name, rate in rates.items()
        },
        scalability=scalability_after(snapshot, memory.scalability, memory.last),
        fits=fits_after(snapshot, counts, memory.fits, memory.last),
        holders=holders_after(snapshot, counts, memory.holders),
        fixed=fixed,
        tails=tails_after(snapshot, fixed_ms(fixed), memory.tails),
        lucks=lesson.lucks(),
        margins=lesson.margins(),
        prices=lesson.priced(),
        proved=lesson.proved(),
        onsets=onsets_per_s(snapshot, memory.last),
    )


def _unsettled(snapshot: Snapshot, memory: Memory) -> set[str]:
    """Tasks to which items did not come as they do: what a change held up for a moment comes all at once."""
    last = memory.last
    changed = last is not None and current_parallelism(last) != current_parallelism(snapshot)
    return set(snapshot.tasks) if changed or memory.prices.pause_s else set(memory.holders)


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What an interval that was held or not says about the margins."""

    snapshot: Snapshot
    memory: Memory
    parameters: PenstockParameters
    rates: Mapping[str, float]
    prices: Prices

    def _plan(self) -> Mapping[str, float] | None:
        """What was planned for this interval."""
        ahead = self.memory.prices.ahead(self.snapshot.interval_s)
        return self.memory.plans[-ahead] if len(self.memory.plans) >= ahead else None

    def _is_surprised(self) -> bool:
        """Whether more came than was planned for, and that is no luck."""
        plan = self._plan()
        return plan is not None and any(
            rate > _MORE_THAN_PLANNED * plan.get(name, rate)
            and not is_luck(rate, plan[name], self.snapshot.interval_s)
            for name, rate in self.rates.items()
        )

    def priced(self) -> Prices:
        """What a change costs that only saved, if one took effect in this interval and nothing else did."""
        last = self.memory.last
        if last is None or self._is_surprised():
            return self.prices
        before, now = current_parallelism(last), current_parallelism(self.snapshot)
        only_saved = now != before and all(now[name] <= before.get(name, 0) for name in now)
        if not only_saved or any(held(last, one) is False for one in last.constraints):
            return self.prices
        broken = any(held(self.snapshot, one) is False for one in self.snapshot.constraints)
        return self.prices.saved(self.snapshot.interval_s if broken else 0.0)

    def proved(self) -> Proved:
        last, known = self.memory.last, self.memory.proved
        if last is None:
            return known
        before, now = current_parallelism(last), current_parallelism(self.snapshot)
        if before != now:
            return known.changed(before, now)
        return known.then(
            self.rates, held=all(held(self.snapshot, one) is not False for one in self.snapshot.constraints)
        )

    def margins(self) -> dict[str, Margin]:
        plan, surprised = self._plan(), self._is_surprised()
        found = {}
        for one in self.snapshot.constraints:
            share = share_of(one, self.parameters)
            margin = self.memory.margins.get(one.name, first_margin(share))
            kept = held(self.snapshot, one)
            if kept is not None and plan is not None and self.parameters.margin == "on":
                if surprised or kept:
                    margin = after_load(margin, share, missed=not kept)
                if not surprised and self._is_settled():
                    margin = after_wait(margin, share, missed=not kept)
            found[one.name] = margin
        return found

    def lucks(self) -> Mapping[str, Luck]:
        """By what was known before this interval; a load that changes has luck of another kind."""
        if self.parameters.margin == "off" or not (self._is_settled() and self._is_steady()):
            return self.memory.lucks
        try:
            came = demand(self.snapshot, self.memory.counts, self.rates)
            return Model(self.snapshot, self.memory, self.parameters).lucks(came)
        except UnknownError:
            return self.memory.lucks

    def _is_steady(self) -> bool:
        """Whether as much came as in the interval before, but for luck."""
        return all(
            is_luck(rate, self.memory.sources.get(name, History((rate,))).rates[-1], self.snapshot.interval_s)
            for name, rate in self.rates.items()
        )

    def _is_settled(self) -> bool:
        """Whether nothing was on its way, and the interval before left nothing that breaks this one."""
        last = self.memory.last
        return (
            last is not None
            and current_parallelism(last) == current_parallelism(self.snapshot)
            and self.memory.prices.order is None
            and self.memory.prices.pause_s == 0.0
            and all(held(last, one) is not False for one in last.constraints)
        )


def _rates(snapshot: Snapshot) -> dict[str, float]:
    rates = {name: due_per_s(task) for name, task in snapshot.tasks.items() if task.kind == "source"}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _stood_still_s(snapshot: Snapshot, counts: Counted, rates: Mapping[str, float]) -> float:
    """How much of the interval nothing was done, as the task tells that was busiest or did most."""
    came = demand(snapshot, counts, rates)
    done = [
        max(task.processed_total / (came[name] * snapshot.interval_s), finite(task.utilization) or 0.0)
        for name, task in snapshot.tasks.items()
        if task.kind != "source" and task.processed_total is not None and came.get(name)
    ]
    if not done or max(done) > _STOPPED:
        return 0.0
    return snapshot.interval_s * (1.0 - max(done))
