"""The rate of a source that knows its lag is what arrives, read or not."""

from typing import Any

import pytest

from penstock.observe.demand import Demand
from penstock.stats.rates import InstanceRates
from penstock.stats.report import ReplicaReport
from penstock.stats.snapshot import Snapshot, TaskStats
from penstock.stats.summary import summarise


def rate(demand: Demand, read: int, lags: list[int | None], **more: Any) -> float | None:
    """In an interval of 2 s in which each replica read so much, and was so far behind at the end."""
    rates = InstanceRates(window_s=2.0, useful_s=0.5, processed=read, emitted=read)
    reports = [
        ReplicaReport(task="in", replica=replica, rates=rates, lag_items=lag, **more)
        for replica, lag in enumerate(lags)
    ]
    total = float(read * len(lags))
    source = TaskStats(kind="source", parallelism=2, processed_total=total, rate_total=total / 2.0)
    shown = demand.seen(Snapshot(interval_s=2.0, tasks={"in": source}), summarise(reports))
    return shown.tasks["in"].rate_total


def test_what_arrives_is_what_was_read_and_the_growth_of_the_lag() -> None:
    demand = Demand()
    assert rate(demand, 100, [10, 30]) == 100  # nothing to compare with
    assert rate(demand, 100, [300, 140]) == 300  # held back
    assert rate(demand, 100, [200, 140]) == 50  # catching up
    assert rate(demand, 100, [0, 0]) == 0  # more was read than there could be: the broker lost some


@pytest.mark.parametrize("lags", [[300], [300, None], []])
def test_a_replica_that_says_nothing_leaves_what_was_read(lags: list[int | None]) -> None:
    demand = Demand()
    rate(demand, 100, [10, 30])
    assert rate(demand, 100, lags) == 50.0 * len(lags)
    assert rate(demand, 100, [700, 700]) == 100  # what came before is not known
    assert rate(demand, 100, [800, 800]) == 200


def test_who_knows_due_times_is_believed() -> None:
    demand = Demand()
    rate(demand, 100, [10, 30], due_s=1.0)
    assert rate(demand, 100, [300, 140], due_s=1.0) == 100
