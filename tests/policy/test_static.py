"""Nothing ever changes."""

from penstock.policy.registry import create_policy
from tests.policy.linear_flows import WORD_COUNT


def test_keeps_everything() -> None:
    policy = create_policy("static")
    decision, _ = policy.decide(WORD_COUNT.snapshot({"flat_map": 3, "count": 4}), policy.initial_memory())
    assert decision.parallelism == {"flat_map": 3, "count": 4}
    assert decision.feasible
    assert decision.reasons[0].rule == "static"
