"""The policy as a whole: what must hold whatever is measured."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.decision import Decision
from penstock.policy.penstock.memory import Memory
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.policy import Penstock
from penstock.policy.registry import create_policy
from penstock.stats.snapshot import Snapshot
from tests.policy.penstock.flows import row
from tests.policy.snapshots import any_snapshot

POLICY = Penstock(PenstockParameters())
ONE_EACH = (1, 1)

rates = st.floats(5, 2_000)
services = st.tuples(st.floats(1, 60), st.floats(1, 60))


def decided(*snapshots: Snapshot, policy: Penstock = POLICY) -> tuple[Decision, Memory]:
    """What comes of a flow that is seen so, one interval after the other."""
    memory = policy.initial_memory()
    for one in snapshots:
        decision, memory = policy.decide(one, memory)
    return decision, memory


def total(decision: Decision) -> int:
    return sum(decision.parallelism.values())


@settings(max_examples=25)
@given(rates, st.floats(1, 3), services)
def test_more_load_never_means_fewer_replicas(rate: float, more: float, each_ms: Any) -> None:
    before, _ = decided(row(rate, each_ms, ONE_EACH, most=None, bound_ms=300))
    then, _ = decided(row(rate * more, each_ms, ONE_EACH, most=None, bound_ms=300))
    assert total(then) >= total(before)


@settings(max_examples=25, deadline=None)
@given(st.floats(20, 300), st.floats(1, 3), st.integers(1, 12))
def test_nor_does_it_after_some_intervals(rate: float, more: float, intervals: int) -> None:
    """Whatever was learnt so far, what comes now may be more or less."""
    _, memory = decided(*(row(rate, replicas=(8, 3), luck=0.01 * n) for n in range(intervals)))
    before, then = (
        POLICY.decide(row(comes, replicas=(8, 3), luck=0.5), memory)[0] for comes in (rate, rate * more)
    )
    assert all(then.parallelism[name] >= count for name, count in before.parallelism.items())


@settings(max_examples=25, deadline=None)
@given(st.floats(20, 300), st.floats(1, 4), st.integers(1, 12))
def test_a_looser_bound_never_means_more_after_some_intervals(
    rate: float, looser: float, intervals: int
) -> None:
    tight, loose = (
        decided(*(row(rate, replicas=ONE_EACH, bound_ms=bound, luck=0.01 * n) for n in range(intervals)))[0]
        for bound in (90.0, 90.0 * looser)
    )
    assert total(loose) <= total(tight)


@settings(max_examples=25)
@given(rates, st.floats(1, 4), services)
def test_a_looser_bound_never_means_more_replicas(rate: float, looser: float, each_ms: Any) -> None:
    tight, _ = decided(row(rate, each_ms, ONE_EACH, bound_ms=150))
    loose, _ = decided(row(rate, each_ms, ONE_EACH, bound_ms=150 * looser))
    assert total(loose) <= total(tight)


@settings(max_examples=25)
@given(any_snapshot(), any_snapshot())
def test_limits_are_kept_whatever_is_measured(first: Snapshot, second: Snapshot) -> None:
    memory = POLICY.initial_memory()
    for one in (first, second):
        decision, memory = POLICY.decide(one, memory)
        for name, task in one.elastic_tasks().items():
            count = decision.parallelism[name]
            assert count == task.parallelism or task.within_limits(count) == count


@settings(max_examples=25)
@given(rates, services, st.integers(1, 12))
def test_limits_are_kept_under_any_load(rate: float, each_ms: Any, most: int) -> None:
    decision, _ = decided(row(rate, each_ms, ONE_EACH, most=most))
    assert all(1 <= count <= most for count in decision.parallelism.values())


@settings(max_examples=25)
@given(rates, services, st.floats(0, 1_000))
def test_the_same_snapshots_give_the_same_decisions(rate: float, each_ms: Any, backlog: float) -> None:
    seen = [row(rate, each_ms, backlog=backlog, luck=luck) for luck in (0.0, 1.0, 2.0)]
    assert decided(*seen) == decided(*seen)


@pytest.mark.parametrize(
    "lacks", ["processed_total", "useful_s", "queue_wait_ms", "latency_ms", "service_cv", "interarrival_cv"]
)
def test_nothing_that_must_be_known_is_made_up(lacks: str) -> None:
    """Without what an item costs nothing is done; without what merely sharpens the model it goes on."""
    also: dict[str, Any] = {"service_ms": None} if lacks in ("useful_s", "latency_ms") else {}
    overloaded = row(400, replicas=ONE_EACH, **{lacks: None, **also})
    decision, _ = decided(overloaded)
    if lacks in ("processed_total", "useful_s", "latency_ms"):
        assert decision.parallelism == {"t0": 1, "t1": 1}
        assert decision.reasons[0].rule == "missing_data"
        assert decision.reasons[0].why.endswith("nothing changes until it is")
    else:
        assert total(decision) > 2


def test_a_source_without_a_rate_stops_everything() -> None:
    seen = row(400, replicas=ONE_EACH)
    source = msgspec.structs.replace(seen.tasks["source"], rate_total=None)
    decision, memory = decided(msgspec.structs.replace(seen, tasks={**seen.tasks, "source": source}))
    assert decision.parallelism == {"t0": 1, "t1": 1}
    assert decision.reasons[0].why == "'source' lacks rate_total; nothing changes until it is measured"
    assert memory == Memory()


@settings(max_examples=25)
@given(any_snapshot(), any_snapshot(), st.booleans())
def test_missing_or_stale_data_are_never_an_action(first: Snapshot, second: Snapshot, stale: bool) -> None:
    """Whatever is measured besides: with the last snapshot again, or without the rate of a source."""
    _, memory = decided(first)
    seen = first if stale else _without_a_rate(second)
    decision, after = POLICY.decide(seen, memory)
    if decision.reasons and decision.reasons[0].rule in ("stale_data", "missing_data"):
        assert decision.parallelism == {name: one.parallelism for name, one in seen.elastic_tasks().items()}
        assert (decision.batch_lifetime_ms, decision.chains) == ({}, seen.chains)
    else:
        assert stale, "nothing was done in it, so it may as well be a new one"
    assert stale or after == memory


def _without_a_rate(seen: Snapshot) -> Snapshot:
    source = msgspec.structs.replace(seen.tasks["source"], rate_total=None)
    return msgspec.structs.replace(seen, tasks={**seen.tasks, "source": source})


def test_a_repeated_snapshot_is_not_acted_on() -> None:
    calm, overloaded = row(50), row(400)
    _, memory = decided(calm)
    _, memory = POLICY.decide(overloaded, memory)
    decision, again = POLICY.decide(overloaded, memory)
    assert decision.parallelism == {"t0": 4, "t1": 2}
    assert decision.reasons[0].rule == "stale_data"
    assert again == memory


def test_what_is_needed_is_ordered_at_once_for_the_whole_row() -> None:
    decision, _ = decided(row(400, replicas=ONE_EACH))
    # 8 and 2 would be busy all the time.
    assert 9 <= decision.parallelism["t0"] <= 13
    assert 3 <= decision.parallelism["t1"] <= 5
    assert decision.reasons[0].why.startswith("400 items/s are expected: that takes ")


def test_an_order_is_repeated_until_it_has_come() -> None:
    first, memory = decided(row(400, replicas=ONE_EACH))
    later, memory = POLICY.decide(row(420, replicas=ONE_EACH, luck=1.0), memory)
    assert later.parallelism == first.parallelism
    assert later.reasons[0].why == "replicas that were ordered 5 s ago are on their way"
    came = row(300, replicas=tuple(first.parallelism.values()))
    decision, memory = POLICY.decide(came, memory)
    assert memory.prices.delay_s == 5.0
    assert all(reason.rule != "order" for reason in decision.reasons)


def test_fewer_are_ordered_only_after_some_intervals_that_agree() -> None:
    seen = [row(40, replicas=(8, 4), luck=0.01 * number) for number in range(6)]
    changed = [decided(*seen[: 1 + number])[0].parallelism != {"t0": 8, "t1": 4} for number in range(6)]
    assert changed[:3] == [False] * 3
    assert any(changed)


def test_a_constant_load_settles() -> None:
    """With replicas as they are ordered, nothing changes any more after the first minute."""
    memory, changes = POLICY.initial_memory(), []
    counts: tuple[int, ...] = (6, 3)
    for number in range(60):
        one = row(150 + (number * 7919 % 13 - 6), replicas=counts, luck=0.01 * (number % 5))
        decision, memory = POLICY.decide(one, memory)
        after = tuple(decision.parallelism.values())
        changes.append(after != counts)
        counts = after
    assert sum(changes) <= 2
    assert not any(changes[12:])


@settings(max_examples=10, deadline=None)
@given(st.integers(26, 50))
def test_one_odd_interval_of_a_constant_load_changes_nothing(odd: int) -> None:
    """One miss of so many is what was asked for, whatever a model makes of it."""
    memory, counts = POLICY.initial_memory(), (6, 3)
    for number in range(60):
        wait_ms = 60.0 if number == odd else 3.0
        one = row(150 + (number * 7919 % 13 - 6), replicas=counts, wait_ms=wait_ms, luck=0.01 * (number % 5))
        decision, memory = POLICY.decide(one, memory)
        after = (decision.parallelism["t0"], decision.parallelism["t1"])
        assert after == counts or number < 20
        counts = after


@settings(max_examples=10, deadline=None)
@given(st.floats(140, 172))
def test_what_breaks_a_bound_under_a_load_that_is_luck_is_no_surprise(rate: float) -> None:
    _, memory = decided(*(row(150, luck=0.01 * number) for number in range(12)), row(rate, wait_ms=60.0))
    assert memory.margins["c1"].quantile <= 0.99
    _, memory = decided(*(row(150, luck=0.01 * number) for number in range(12)), row(220, wait_ms=60.0))
    assert memory.margins["c1"].quantile > 1.0


def test_what_cannot_be_kept_is_told_with_what_is_missing() -> None:
    few, _ = decided(row(400, replicas=ONE_EACH, most=4))
    assert not few.feasible
    assert few.reasons[0].why == "c1 cannot be kept: it would need more replicas of t0"
    never, _ = decided(row(40, bound_ms=20))
    assert never.reasons[0].why.startswith("c1 cannot be kept: replicas do not help: a bound of ")


def test_a_share_that_is_asked_for_costs_replicas() -> None:
    replicas = [
        total(decided(row(2_000, replicas=ONE_EACH, bound_ms=45, most=200, constraint={"share": share}))[0])
        for share in (0.6, 0.9, 0.999)
    ]
    assert replicas == sorted(replicas)
    assert replicas[0] < replicas[-1]


def test_a_percentile_takes_more_than_the_mean() -> None:
    mean, p95, p99 = (
        total(decided(row(400, replicas=ONE_EACH, bound_ms=60, constraint={"statistic": one}))[0])
        for one in ("mean", "p95", "p99")
    )
    assert mean < p95 < p99


@pytest.mark.parametrize(
    "part",
    ["forecast", "season", "headroom", "capacity", "waiting", "margin", "price", "lifetimes", "chains"],
)
def test_every_part_can_be_switched_off(part: str) -> None:
    policy = Penstock(msgspec.convert({part: "off"}, PenstockParameters))
    decision, _ = decided(row(400, replicas=ONE_EACH), row(420, replicas=(9, 3)), policy=policy)
    assert total(decision) >= 12


def test_it_goes_by_its_name() -> None:
    assert create_policy("penstock").name == "penstock"


def test_a_large_flow_is_decided_in_no_time() -> None:
    """20 tasks of 100 replicas: 5 ms are the aim, and five times that is not to be passed on any machine."""
    flow = [row(4_000, [20.0] * 20, [100] * 20, bound_ms=2_000, most=200, luck=luck) for luck in (0.0, 1.0)]
    _, memory = decided(flow[0])
    quickest = min(_seconds(flow[1], memory) for _ in range(5))
    assert quickest < 0.025


def _seconds(snapshot: Snapshot, memory: Memory) -> float:
    begin = time.process_time()
    POLICY.decide(snapshot, memory)
    return time.process_time() - begin


def test_a_burst_after_a_change_is_not_how_items_come() -> None:
    """A restart of a second holds items up, which then come all at once: that asks for no more replicas."""
    _, memory = decided(*(row(150, replicas=(4, 2), luck=0.01 * number) for number in range(6)))
    burst = row(150, replicas=(5, 2), wait_ms=60.0, interarrival_cv=3.1)
    decision, memory = POLICY.decide(burst, memory)
    assert total(decision) <= 7
    assert memory.counts.arrival_cv2("t0") == pytest.approx(1.0)
    decision, memory = POLICY.decide(row(150, replicas=(5, 2), luck=0.1, interarrival_cv=3.1), memory)
    assert memory.counts.arrival_cv2("t0") > 3.0, "if it goes on, it is"
