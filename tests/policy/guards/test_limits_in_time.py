"""Warm-up, cool-down, activation and the scale-down window."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.agreement import AgreementRule
from penstock.policy.guards.activation import Activation
from penstock.policy.guards.cool_down import CoolDown
from penstock.policy.guards.port import Seen
from penstock.policy.guards.scale_down_window import ScaleDownWindow
from penstock.policy.guards.warm_up import WarmUp
from tests.policy.guards.scripted import proposal, shown, snapshot, steps


def test_warm_up_holds_everything_back_at_the_start() -> None:
    decisions = steps(WarmUp(10), [(snapshot(a=1), {"a": 3})] * 3)
    assert [d.parallelism["a"] for d in decisions] == [1, 1, 3]
    refusal = decisions[0].refused[0]
    assert (refusal.guard, refusal.task, refusal.before, refusal.after) == ("warm_up", "a", 1, 3)
    assert refusal.why == "5 of 10 s since the start"


def test_after_a_scale_up_nothing_is_scaled() -> None:
    script = [(snapshot(a=1), {"a": 3}), (snapshot(a=3), {"a": 5}), (snapshot(a=3), {"a": 5})]
    decisions = steps(CoolDown(2), script)
    assert [d.parallelism["a"] for d in decisions] == [3, 3, 5]
    assert decisions[1].refused[0].why == "1 of 2 intervals since the last scale-up"


def test_cool_down_counts_intervals_however_long_they_are() -> None:
    script = [
        (msgspec.structs.replace(snapshot(a=before), interval_s=2.01), {"a": after})
        for before, after in ((1, 3), (3, 5), (3, 5))
    ]
    decisions = steps(CoolDown(2), script, interval_s=1.99)
    assert [d.parallelism["a"] for d in decisions] == [3, 3, 5]


def test_after_a_scale_down_only_scale_downs_wait() -> None:
    script = [
        (snapshot(a=9, b=2), {"a": 5, "b": 2}),
        (snapshot(a=5, b=2), {"a": 3, "b": 4}),
    ]
    decisions = steps(CoolDown(2), script)
    assert decisions[1].parallelism == {"a": 5, "b": 4}
    assert decisions[1].refused[0].why == "1 of 2 intervals since the last scale-down"


@pytest.mark.parametrize(("rule", "expected"), [("last", 4), ("max", 7), ("median", 5)])
def test_activation_waits_for_proposals_in_one_direction(rule: AgreementRule, expected: int) -> None:
    wanted = [5, 1, 5, 7, 4, 4]
    decisions = steps(Activation(3, rule), [(snapshot(a=2), {"a": count}) for count in wanted[:5]])
    assert [d.parallelism["a"] for d in decisions] == [2, 2, 2, 2, expected]
    assert decisions[3].refused[0].why == "proposal 2 of 3 in a row"


def test_activation_begins_anew_after_a_change() -> None:
    script = [(snapshot(a=2), {"a": 5})] * 2 + [(snapshot(a=5), {"a": 9})] * 2
    decisions = steps(Activation(2, "last"), script)
    assert [d.parallelism["a"] for d in decisions] == [2, 5, 5, 9]


def test_scale_down_waits_for_its_window_and_takes_its_maximum() -> None:
    script = [(snapshot(a=9), {"a": count}) for count in (2, 6, 3, 3)]
    decisions = steps(ScaleDownWindow(15), script)
    assert [d.parallelism["a"] for d in decisions] == [9, 9, 9, 6]
    assert decisions[0].refused[0].why == "fewer replicas were enough for 0 of 15 s"
    assert decisions[3].refused[0].why == "6 replicas were needed within the last 15 s"


def test_replicas_that_have_been_enough_wait_for_a_shorter_window() -> None:
    script = [(snapshot(a=9), {"a": count}) for count in (6, 3, 4, 3)]

    def left(shown_window_s: float | None, are_shown: tuple[int, ...], window_s: float = 20) -> list[int]:
        decisions = steps(ScaleDownWindow(window_s, shown_window_s), script, are_shown=are_shown)
        return [decision.parallelism["a"] for decision in decisions]

    assert left(5, (1, 2, 3, 4)) == [9, 6, 9, 4], "the largest of the window, then a new one"
    assert left(5, (3,)) == [9, 9, 4, 9], "only where it is shown"
    assert left(5, ()) == left(None, (1, 2, 3, 4)) == [9, 9, 9, 9]
    assert left(60, (1, 2, 3, 4), window_s=5) == left(None, (), window_s=5), "never longer"


def test_it_must_be_shown_of_the_number_that_is_proposed() -> None:
    guard = ScaleDownWindow(20, 0)
    seen = Seen(snapshot(a=9, b=9), 5.0)
    proposed = shown(proposal(seen.snapshot, {"a": 4, "b": 4}))
    more = msgspec.structs.replace(proposed, parallelism={"a": 4, "b": 5})
    decision, _ = guard.review(seen, more, guard.initial_memory())
    assert decision.parallelism == {"a": 4, "b": 9}


def test_load_that_comes_back_clears_the_window() -> None:
    script = [(snapshot(a=9), {"a": count}) for count in (2, 2, 9, 2, 2, 2)]
    assert [d.parallelism["a"] for d in steps(ScaleDownWindow(10), script)] == [9, 9, 9, 9, 9, 2]


def test_scale_ups_are_not_delayed() -> None:
    assert steps(ScaleDownWindow(60), [(snapshot(a=2), {"a": 9})])[0].parallelism == {"a": 9}


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.sampled_from([0.0, 5.0, 12.0]))
def test_never_below_the_largest_recent_proposal(proposals: list[int], window_s: float) -> None:
    decisions = steps(ScaleDownWindow(window_s), [(snapshot(a=10), {"a": count}) for count in proposals])
    for index, decision in enumerate(decisions):
        reach = int(window_s // 5)
        recent = proposals[max(0, index - reach) : index + 1]
        assert decision.parallelism["a"] >= min(10, max(recent))
