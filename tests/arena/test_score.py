"""How a run is judged, checked by hand."""

import pytest

from penstock.arena.moments import Moment
from penstock.arena.oracle import Plan
from penstock.arena.score import Score, Trail, score, standing


def moments(*held_and_replicas: tuple[bool, int], cores: float = 1.0) -> list[Moment]:
    return [
        Moment(5.0 * n, 5.0 * n + 5.0, held, {"work": replicas}, cores)
        for n, (held, replicas) in enumerate(held_and_replicas)
    ]


PLAN = Plan(moments((True, 2), (False, 4), (True, 2), (True, 2)), {}, 0)


def judged(*held_and_replicas: tuple[bool, int]) -> Score:
    return score("w", 1, "p", Trail(moments(*held_and_replicas, cores=1.5), 3), PLAN, gentle=True)


def test_a_run_against_the_plan() -> None:
    one = judged((False, 2), (True, 6), (False, 6), (True, 6))
    assert one.oracle_held == 0.75
    assert one.held == pytest.approx(1 / 3)
    assert one.cost == 2.0
    assert one.cpu == 1.5
    assert one.overshoot == 0.5
    # Ten seconds: what nobody can hold neither ends nor lengthens a time that is broken.
    assert one.longest_broken_s == 10.0
    assert one.changes == 3


def test_as_good_as_the_oracle() -> None:
    one = judged((True, 2), (False, 4), (True, 2), (True, 2))
    assert (one.held, one.cost, one.overshoot, one.longest_broken_s) == (1.0, 1.0, 0.0, 0.0)


def test_where_nothing_can_be_held_or_scaled_there_is_no_figure() -> None:
    plan = Plan(moments((False, 0)), {}, 0)
    one = score("w", 1, "p", Trail(moments((True, 0)), 0), plan, gentle=True)
    assert (one.held, one.cost, one.overshoot) == (None, None, None)
    assert standing([one]).held is None


def test_over_seeds_means_and_the_longest_time_broken() -> None:
    both = standing([judged(*[(True, 2)] * 4), judged(*[(False, 3)] * 4)])
    assert (both.held, both.bouts, both.longest_broken_s) == (0.5, 2, 15.0)
    assert both.cost == pytest.approx((0.8 + 1.2) / 2)
