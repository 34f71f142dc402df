"""Intervals disturbed by a boundary are shown and recorded, but nobody decides on them."""

from penstock.control.engine import Effect
from penstock.control.loop import Controller
from penstock.control.settling import Settling
from penstock.policy.decision import Decision
from penstock.policy.registry import create_policy
from penstock.testing.engine import FakeEngine
from tests.control.steady_task import following, loaded

SNAPSHOT = loaded(100, 1)


def test_only_intervals_that_begin_after_it_has_settled_count() -> None:
    settling = Settling(settle_s=2.0)
    assert settling.refused(SNAPSHOT, "p", 5.0) is None
    settling.note(400.0, 10.4)
    refused = settling.refused(SNAPSHOT, "p", 15.0)
    assert refused is not None
    assert refused.parallelism == {"work": 1}
    assert refused.refused[0].why == "the sources stood still for 400 ms at a boundary"
    assert settling.refused(SNAPSHOT, "p", 17.5) is None


class WithBoundaries(FakeEngine):
    """Every change takes a boundary."""

    def apply(self, decision: Decision) -> Effect | None:
        effect = super().apply(decision)
        return None if effect is None else Effect(gap_ms=500.0)


def test_the_controller_rests_for_the_interval_after_a_boundary() -> None:
    engine = WithBoundaries(following([900.0] * 4), {"work": 1})
    cycles = list(Controller(engine, create_policy("ds2"), engine.clock).cycles())
    rules = [[reason.rule for reason in cycle.decision.reasons] for cycle in cycles]
    assert [rule == ["boundary"] for rule in rules] == [False, True, False, False]
    assert [cycle.decision.parallelism["work"] for cycle in cycles] == [4, 4, 4, 4]
