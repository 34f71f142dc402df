"""Intervals disturbed by a boundary are shown and recorded, but nobody decides on them."""

from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.engine import Boundary, Effect
from penstock.control.loop import Controller
from penstock.control.settling import GUARD, Settling, undecided
from penstock.policy.decision import Decision
from penstock.policy.registry import create_policy
from penstock.stats.snapshot import Snapshot
from penstock.testing.engine import FakeEngine
from tests.control.steady_task import following, loaded


def test_only_intervals_that_begin_after_it_has_settled_count() -> None:
    settling = Settling(settle_s=2.0)
    assert settling.stood_still_ms(5.0, 5.0) is None
    settling.note(None)
    settling.note(Boundary(ended_at_s=10.4, gap_ms=400.0))
    assert settling.stood_still_ms(5.0, 15.0) == 400.0
    assert settling.stood_still_ms(5.0, 17.5) is None
    settling.note(Boundary(ended_at_s=10.4, gap_ms=400.0))
    settling.note(None)
    assert settling.stood_still_ms(5.0, 17.5) is None, "a boundary that is told again is no new one"


def test_nothing_changes_where_nothing_was_decided() -> None:
    decision = undecided(loaded(100, 1), "p", 400.0)
    assert decision.parallelism == {"work": 1}
    assert decision.refused[0].why == "the sources stood still for 400 ms at a boundary"


def controlled(engine: FakeEngine, clock: Callable[[], float] | None = None) -> list[bool]:
    """Which intervals were not decided on, because of a boundary."""
    controller = Controller(
        engine, create_policy("ds2"), engine.clock if clock is None else clock, monotonic=engine.clock
    )
    return [any(reason.rule == GUARD for reason in one.decision.reasons) for one in controller.cycles()]


def test_the_controller_rests_for_the_interval_after_a_boundary() -> None:
    engine = FakeEngine(following([900.0] * 4), {"work": 1}, gap_ms=500.0)
    assert controlled(engine) == [False, True, False, False]
    assert [decision.parallelism["work"] for decision in engine.applied] == [4, 4, 4, 4]


def test_a_boundary_that_nobody_decided_is_not_taken_for_load() -> None:
    """The timer of commits began it, one second before the end of the second interval of five seconds."""

    def show(number: int, replicas: Mapping[str, int]) -> Snapshot | None:
        if number == 1:
            engine.stand_still(500.0, 9.0)
        return following([900.0] * 5)(number, replicas)

    engine = FakeEngine(show, {"work": 4})
    assert controlled(engine) == [False, True, True, False, False]
    why = engine.applied[1].refused[0].why
    assert why == "the sources stood still for 500 ms at a boundary"


def test_a_boundary_just_after_the_start_of_an_interval_disturbs_this_one_only() -> None:
    def show(number: int, replicas: Mapping[str, int]) -> Snapshot | None:
        if number == 1:
            engine.stand_still(500.0, 5.5)
        return following([900.0] * 4)(number, replicas)

    engine = FakeEngine(show, {"work": 4})
    assert controlled(engine) == [False, True, False, False]


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6))
def test_a_step_of_the_wall_clock_changes_nothing(steps: list[float]) -> None:
    jumps = iter(steps)
    engine = FakeEngine(following([900.0] * 6), {"work": 1}, gap_ms=500.0)
    assert controlled(engine, lambda: engine.clock() + next(jumps)) == [
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_an_effect_alone_is_for_the_log() -> None:
    class OnlyTold(FakeEngine):
        def apply(self, decision: Decision) -> Effect | None:
            super().apply(decision)
            return Effect(gap_ms=500.0)

    assert controlled(OnlyTold(following([900.0] * 3), {"work": 1})) == [False, False, False]
