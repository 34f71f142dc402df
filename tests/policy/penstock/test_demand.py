"""What comes to each task, and what drains what has piled up."""

import math

import msgspec
import pytest

from penstock.policy.penstock.counted import Counted, counted
from penstock.policy.penstock.demand import demand, draining, owed_per_s
from tests.policy.penstock.flows import row


def test_the_rates_of_sources_reach_all_tasks() -> None:
    seen = row(100)
    known = counted(Counted(), seen)
    assert demand(seen, known, {"source": 250.0}) == {
        "source": 250.0,
        "t0": 250.0,
        "t1": 250.0,
        "sink": 250.0,
    }
    drained = demand(seen, known, {"source": 250.0}, {"t0": 50.0})
    assert (drained["t0"], drained["t1"]) == (250.0, 300.0)


def test_what_nobody_measured_is_left_out() -> None:
    seen = row(100, processed_total=None)
    known = counted(Counted(), seen)
    assert demand(seen, known, {"source": 250.0}) == {"source": 250.0, "t0": 250.0}


@pytest.mark.parametrize("work_s", [0.5, 2.0, 4.0, 30.0])
def test_a_backlog_is_gone_in_time_and_never_costs_more_than_it_may(work_s: float) -> None:
    count = draining(10.0, work_s, 5.0, 2.5)
    takes_s = work_s / (1.0 - 10.0 / count)
    assert count <= math.ceil(2.5 * 10.0)
    assert takes_s <= max(5.0, work_s * 2.5 / 1.5) + 1e-6
    assert draining(10.0, 0.0, 5.0, 2.5) == 1


def test_a_source_that_is_behind_owes() -> None:
    seen = row(100)
    behind = msgspec.structs.replace(seen.tasks["source"], lag_items=500.0, catch_up_s=10.0)
    assert owed_per_s(seen, 5.0) == {}
    assert owed_per_s(msgspec.structs.replace(seen, tasks={**seen.tasks, "source": behind}), 5.0) == {
        "source": 50.0
    }
