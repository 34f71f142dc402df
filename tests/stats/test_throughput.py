"""What was due, and what arrived."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.throughput import processed_share, throughput_degradation


def test_a_flow_that_follows_degrades_nothing() -> None:
    assert throughput_degradation([(100.0, 100.0), (50.0, 50.0)]) == 0.0
    assert processed_share([(100.0, 100.0), (50.0, 50.0)]) == 1.0


def test_a_backlog_that_arrives_when_hardly_anything_is_due_counts_once() -> None:
    late = [(1000.0, 500.0), (1.0, 501.0)]
    assert throughput_degradation(late) == pytest.approx(1000.0 / 1001.0)
    assert processed_share(late) == 1.0


def test_without_input_there_is_nothing_to_tell() -> None:
    assert throughput_degradation([(0.0, 5.0)]) is None
    assert processed_share([]) is None


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(0, 1)), min_size=1))
def test_what_is_lost_is_the_degradation(intervals: list[tuple[float, float]]) -> None:
    rates = [(due, due * share) for due, share in intervals]
    degradation, share = throughput_degradation(rates), processed_share(rates)
    assert degradation is not None
    assert share is not None
    assert degradation + share == pytest.approx(1.0)
