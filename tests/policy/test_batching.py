"""Output batching: targets use up the budget, lifetimes converge, unknowns stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.batching import (
    adjust_lifetimes,
    adjusted_lifetime_ms,
    batch_targets_ms,
    is_chained,
    smallest_targets_ms,
    yielding_weight,
)
from penstock.policy.batching_graph import Channel, Replica, average_graph
from penstock.stats.snapshot import ConstraintSpec
from tests.policy.snapshots import pipeline, prime_test

amounts = st.floats(0, 1000)


def test_lifetimes_by_hand() -> None:
    # target = 0.8 * (20 - 0.08) / 2 = 7.968; 2 + (7.968 - 1) = 8.968, below 2 * 7.968
    batching = adjust_lifetimes(prime_test(), 0.8)
    assert batching.lifetimes_ms == pytest.approx({"source->prime": 8.968, "prime->sink": 8.968})
    assert (
        batching.reasons[0].why
        == "source->prime may spend 7.97 ms of the 20 ms of c1 on batching and spends 1 ms"
    )


def test_batching_yields_to_queues_that_need_more_than_their_share() -> None:
    # 19.92 ms are left by the tester, of which 0.8 are for batching and 3.984 ms for its queue
    def targets_ms(wait_ms: float | None, yields: float) -> float:
        at_once = {"output_batch_ms": 0.0, "batch_lifetime_ms": 0.0}
        snapshot = prime_test(queue_wait_ms=wait_ms, stream=at_once)
        return sum(adjust_lifetimes(snapshot, 0.8, yields).lifetimes_ms.values())

    assert targets_ms(8.0, 0.0) == pytest.approx(0.8 * 19.92)
    assert targets_ms(3.9, 0.5) == pytest.approx(0.8 * 19.92), "the queue has enough"
    assert targets_ms(8.0, 0.5) == pytest.approx(19.92 - 8.0)
    assert targets_ms(18.0, 0.5) == pytest.approx(0.4 * 19.92), "half of it stays"
    assert targets_ms(None, 0.5) == pytest.approx(19.92 - 9.0), "what goes by on the way stands in for it"
    assert yielding_weight(0.8, 0.5, waits_ms=1.0, left_ms=-1.0) == pytest.approx(0.4)


@given(bound_ms=st.floats(1, 1000), weight=st.floats(0, 1), length=st.integers(1, 5))
def test_targets_use_up_the_budget(bound_ms: float, weight: float, length: int) -> None:
    snapshot = pipeline([0.1] * length, bound_ms=bound_ms)
    (constraint,) = snapshot.constraints
    latency_ms = {Replica(name, 0): 2.0 for name in constraint.tasks()}
    targets = batch_targets_ms(average_graph(snapshot, constraint), constraint, latency_ms, weight)
    assert len(targets) == len(constraint.streams())
    assert sum(targets.values()) == pytest.approx(max(0.0, weight * (bound_ms - 2.0 * length)))


@given(target_ms=amounts, measured_ms=amounts, lifetime_ms=amounts)
def test_a_lifetime_stays_between_nothing_and_twice_the_target(
    target_ms: float, measured_ms: float, lifetime_ms: float
) -> None:
    assert 0 <= adjusted_lifetime_ms(target_ms, measured_ms, lifetime_ms) <= 2 * target_ms


@given(target_ms=st.floats(0.1, 1000), share=st.floats(0.5, 1))
def test_lifetimes_settle_where_the_delay_is_the_target(target_ms: float, share: float) -> None:
    """Items that wait for a share of the lifetime: half for evenly spaced ones, all of it for lone ones."""
    lifetime_ms, measured_ms = 0.0, 0.0
    for _ in range(12):
        lifetime_ms = adjusted_lifetime_ms(target_ms, measured_ms, lifetime_ms)
        measured_ms = share * lifetime_ms
    assert measured_ms == pytest.approx(target_ms, rel=1e-3)


def test_one_change_suffices_when_every_delay_shifts_alike() -> None:
    lifetime_ms = adjusted_lifetime_ms(10.0, 4.0, 6.0)
    assert lifetime_ms == 12.0
    assert adjusted_lifetime_ms(10.0, 4.0 + (lifetime_ms - 6.0), lifetime_ms) == lifetime_ms


def constraint(name: str) -> ConstraintSpec:
    return ConstraintSpec(name=name, sequence=["a->b"], latency_ms=1.0)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), amounts), min_size=1, max_size=4))
def test_the_smallest_of_several_constraints_wins(wanted: list[dict[str, float]]) -> None:
    def channel(name: str) -> Channel:
        return Channel(name, Replica("x", 0), Replica("y", 0))

    asked = [
        (constraint(f"c{i}"), {channel(name): ms for name, ms in targets.items()})
        for i, targets in enumerate(wanted)
    ]
    smallest = smallest_targets_ms(asked)
    assert {c.stream for c in smallest} == {name for targets in wanted for name in targets}
    for key, (target_ms, owner) in smallest.items():
        assert target_ms == min(targets[key.stream] for targets in wanted if key.stream in targets)
        assert wanted[int(owner.name[1:])][key.stream] == target_ms


def test_tasks_that_take_longer_than_the_bound_leave_no_batching() -> None:
    batching = adjust_lifetimes(prime_test(bound_ms=5, latency_ms=7.0), 0.8)
    assert set(batching.lifetimes_ms.values()) == {0.0}


def test_an_unknown_task_latency_leaves_the_streams_alone() -> None:
    batching = adjust_lifetimes(prime_test(latency_ms=None, latency_kind="read_write"), 0.8)
    assert batching.lifetimes_ms == {}
    assert [reason.why for reason in batching.reasons] == [
        "prime.latency_ms was not measured, so the streams of c1 stay as they are"
    ]


def test_the_service_time_stands_in_for_a_read_ready_latency() -> None:
    assert adjust_lifetimes(prime_test(latency_ms=None), 0.8) == adjust_lifetimes(prime_test(), 0.8)


@pytest.mark.parametrize("field", ["output_batch_ms", "batch_lifetime_ms"])
def test_an_unknown_stream_is_left_alone(field: str) -> None:
    batching = adjust_lifetimes(prime_test(stream={field: None}), 0.8)
    assert batching.lifetimes_ms == {}
    assert batching.reasons[0].why == (
        f"source->prime.{field} was not measured, so its batch lifetime stays as it is"
    )


def test_a_stream_that_ships_at_once_has_no_batching_delay() -> None:
    batching = adjust_lifetimes(prime_test(stream={"output_batch_ms": None, "batch_lifetime_ms": 0}), 0.8)
    assert batching.lifetimes_ms == pytest.approx({"source->prime": 7.968, "prime->sink": 7.968})


def test_streams_inside_a_chain_ship_nothing() -> None:
    snapshot = pipeline([0.1, 0.1, 0.1], chains=[["t0", "t1"], ["t2"]])
    assert is_chained(snapshot, "t0", "t1")
    assert not is_chained(snapshot, "t1", "t2")
    assert set(adjust_lifetimes(snapshot, 0.8).lifetimes_ms) == {"source->t0", "t1->t2", "t2->sink"}
