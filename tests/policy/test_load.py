"""The load offered and the share of it that gets through."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.load import delivered_share, same_load, source_rates, source_shortfall
from penstock.stats.snapshot import Snapshot, TaskStats
from tests.policy.linear_flows import WORD_COUNT, linear_flows, parallelisms


def test_bottleneck_decides_the_share() -> None:
    assert delivered_share(WORD_COUNT.snapshot({"flat_map": 10, "count": 5})) == pytest.approx(0.25)
    assert delivered_share(WORD_COUNT.snapshot({"flat_map": 10, "count": 20})) == pytest.approx(1.0)


@given(st.data())
def test_share_lies_between_nothing_and_everything(data: st.DataObject) -> None:
    flow = data.draw(linear_flows())
    share = delivered_share(flow.snapshot(data.draw(parallelisms(flow))))
    assert share is not None
    assert 0 < share <= 1


def test_unknown_without_measurements() -> None:
    bare = Snapshot(interval_s=5, tasks={"s": TaskStats(kind="source", parallelism=1, rate_total=10.0)})
    assert delivered_share(bare) is None
    assert source_shortfall(bare) is None
    assert source_rates(bare) == {"s": 10.0}


def test_shortfall_is_that_of_the_worst_source() -> None:
    snapshot = WORD_COUNT.snapshot({"flat_map": 1, "count": 1})
    source = msgspec.structs.replace(snapshot.tasks["source"], rate_total=100.0, emitted_total=500.0)
    slow = msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, "source": source})
    assert source_shortfall(slow) == pytest.approx(2.0)


def test_same_load() -> None:
    assert same_load({"s": 100.0}, {"s": 109.0}, 0.1)
    assert not same_load({"s": 100.0}, {"s": 111.0}, 0.1)
    assert not same_load({"s": 100.0}, {}, 0.1)
