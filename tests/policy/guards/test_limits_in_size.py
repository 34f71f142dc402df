"""Dead band, maximum step, bounds, forward pipelines and the slot budget."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.guards.bounds import Bounds
from penstock.policy.guards.dead_band import DeadBand
from penstock.policy.guards.forward import Forward
from penstock.policy.guards.maximum_step import MaximumStep
from penstock.policy.guards.slot_budget import SlotBudget
from penstock.stats.snapshot import Snapshot, StreamStats, TaskStats
from tests.policy.guards.scripted import snapshot, steps, task


@pytest.mark.parametrize(("wanted", "given_"), [(103, 100), (97, 100), (104, 104), (96, 96)])
def test_dead_band(wanted: int, given_: int) -> None:
    decision = steps(DeadBand(0.04, 15), [(snapshot(a=100), {"a": wanted})])[0]
    assert decision.parallelism == {"a": given_}
    if wanted == 103:
        assert decision.refused[0].why == "a change by 3.0%, less than 4.0%, wanted for 0 s"


def test_a_small_change_that_is_wanted_for_long_is_made() -> None:
    wanted = [101, 101, 99, 101, 101, 101]
    decisions = steps(DeadBand(0.04, 10), [(snapshot(a=100), {"a": count}) for count in wanted])
    assert [d.parallelism["a"] for d in decisions] == [100, 100, 100, 100, 100, 101]


@pytest.mark.parametrize(
    ("now", "wanted", "given_"), [(4, 40, 8), (1, 9, 2), (10, 1, 4), (2, 1, 1), (1, 2, 2), (10, 12, 12)]
)
def test_maximum_step(now: int, wanted: int, given_: int) -> None:
    decision = steps(MaximumStep(2.0, 0.6), [(snapshot(a=now), {"a": wanted})])[0]
    assert decision.parallelism == {"a": given_}


def test_no_limit_on_steps() -> None:
    assert steps(MaximumStep(None, None), [(snapshot(a=1), {"a": 99})])[0].parallelism == {"a": 99}


@given(st.integers(1, 100), st.integers(1, 200), st.floats(1.01, 4), st.floats(0, 1))
def test_a_step_is_shortened_but_never_blocked_or_turned(
    now: int, wanted: int, up: float, down: float
) -> None:
    after = steps(MaximumStep(up, down), [(snapshot(a=now), {"a": wanted})])[0].parallelism["a"]
    assert min(now, wanted) <= after <= max(now, wanted)
    assert (after == now) == (wanted == now)


def test_bounds() -> None:
    one = snapshot({"a": task(3, min=2, max=5), "b": task(3, min=2)})
    decision = steps(Bounds(), [(one, {"a": 9, "b": 1})])[0]
    assert decision.parallelism == {"a": 5, "b": 2}
    assert not decision.feasible
    assert [refusal.why for refusal in decision.refused] == [
        "'a' may have 2 to 5 replicas",
        "'b' may have 2 to any replicas",
    ]


def test_bounds_leave_alone_what_does_not_change() -> None:
    one = snapshot({"a": task(9, max=5)})
    assert steps(Bounds(), [(one, {"a": 9})])[0].parallelism == {"a": 9}


def test_bounds_drop_what_is_not_elastic() -> None:
    one = snapshot({"a": task(3), "f": TaskStats(kind="task", parallelism=2)})
    decision = steps(Bounds(), [(one, {"f": 4, "nobody": 1})])[0]
    assert decision.parallelism == {"a": 3}
    assert [refusal.why for refusal in decision.refused] == [
        "'f' is not an elastic task",
        "'nobody' is not an elastic task",
    ]


def pipeline() -> Snapshot:
    joined = StreamStats(origin="a", receiver="b", wiring="forward")
    made = snapshot(a=2, b=2, c=2)
    return msgspec.structs.replace(made, streams=[*made.streams, joined])


def test_forward_pipelines_stay_equal() -> None:
    decision = steps(Forward(), [(pipeline(), {"a": 5, "b": 2, "c": 1})])[0]
    assert decision.parallelism == {"a": 5, "b": 5, "c": 1}
    assert decision.refused[0].why == "'b' is joined one to one with a task of 5 replicas"


def test_slot_budget_shares_what_is_left() -> None:
    decision = steps(SlotBudget(12), [(snapshot(a=2, b=2, c=6), {"a": 10, "b": 6, "c": 4})])[0]
    assert decision.parallelism == {"a": 4, "b": 3, "c": 4}
    assert not decision.feasible
    assert decision.refused[0].why == "21 slots would be needed and there are 12"


def test_slot_budget_counts_a_pipeline_once() -> None:
    decision = steps(SlotBudget(8), [(pipeline(), {"a": 5, "b": 5, "c": 2})])[0]
    assert decision.parallelism == {"a": 5, "b": 5, "c": 2}


def test_over_budget_already_still_allows_scale_downs() -> None:
    decision = steps(SlotBudget(3), [(snapshot(a=5, b=5), {"a": 4, "b": 6})])[0]
    assert decision.parallelism == {"a": 4, "b": 5}


replicas = st.integers(1, 20)


@given(st.lists(st.tuples(replicas, replicas), min_size=1, max_size=5), st.integers(1, 60))
def test_budget_is_kept_and_nothing_is_taken_from_what_runs(pairs: list[tuple[int, int]], slots: int) -> None:
    now = {f"t{i}": before for i, (before, _) in enumerate(pairs)}
    wanted = {f"t{i}": after for i, (_, after) in enumerate(pairs)}
    decision = steps(
        SlotBudget(slots), [(snapshot({name: task(count) for name, count in now.items()}), wanted)]
    )[0]
    used = 1 + sum(decision.parallelism.values())
    assert used <= max(slots, 1 + sum(min(now[name], wanted[name]) for name in now))
    for name in now:
        assert min(now[name], wanted[name]) <= decision.parallelism[name] <= max(now[name], wanted[name])
    if 1 + sum(wanted.values()) <= slots:
        assert decision.parallelism == wanted
