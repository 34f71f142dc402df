"""The buffer sizing of 2012."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.batching_buffers import BufferRules, adjusted_size, size_buffers
from tests.policy.snapshots import pipeline, prime_test

RULES = BufferRules()


def test_equation_2_by_hand() -> None:
    assert adjusted_size(100.0, 50.0, 1.0, RULES) == pytest.approx(100.0 * 0.98**50)


def test_equation_3_by_hand() -> None:
    assert adjusted_size(100.0, 0.0, 1.0, RULES) == pytest.approx(110.0)


@pytest.mark.parametrize(("batch_ms", "sender_ms"), [(5.0, 1.0), (20.0, 20.0), (3.0, 0.0)])
def test_in_between_nothing_changes(batch_ms: float, sender_ms: float) -> None:
    assert adjusted_size(100.0, batch_ms, sender_ms, RULES) == 100.0


@given(st.floats(0.5, 1000), st.floats(0, 1e6), st.floats(0, 1e6))
def test_sizes_stay_within_limits(size: float, batch_ms: float, sender_ms: float) -> None:
    assert RULES.smallest_ms <= adjusted_size(size, batch_ms, sender_ms, RULES) <= RULES.largest_ms


def test_only_broken_constraints_act() -> None:
    slow = {"latency_ms": 30.0, "output_batch_ms": 10.0, "batch_lifetime_ms": 20.0}
    broken = size_buffers(prime_test(stream=slow), RULES)
    assert broken.lifetimes_ms == pytest.approx(
        dict.fromkeys(("source->prime", "prime->sink"), 20 * 0.98**10)
    )
    assert broken.reasons[0].why == ("c1 is broken and items wait 10 ms for their envelope on source->prime")
    kept = size_buffers(prime_test(bound_ms=100, stream=slow), RULES)
    assert (kept.lifetimes_ms, kept.reasons) == ({}, [])


def test_an_immediate_stream_begins_at_the_smallest_size() -> None:
    batching = size_buffers(
        prime_test(bound_ms=1, stream={"batch_lifetime_ms": 0, "output_batch_ms": 0}), RULES
    )
    assert batching.lifetimes_ms["source->prime"] == pytest.approx(1.1 * RULES.smallest_ms)


def test_unknown_latencies_change_nothing() -> None:
    batching = size_buffers(prime_test(bound_ms=1, stream={"latency_ms": None}), RULES)
    assert batching.lifetimes_ms == {}
    assert batching.reasons[0].why == "a latency of c1 was not measured, so its streams stay as they are"
    batching = size_buffers(prime_test(bound_ms=1, stream={"output_batch_ms": None}), RULES)
    assert batching.lifetimes_ms == {}
    assert batching.reasons[0].why == (
        "the batching of source->prime was not measured, so its batch lifetime stays as it is"
    )


def test_chained_streams_are_left_out() -> None:
    snapshot = pipeline([0.1, 0.1], bound_ms=1, chains=[["t0", "t1"]])
    assert set(size_buffers(snapshot, RULES).lifetimes_ms) == {"source->t0", "t1->sink"}
