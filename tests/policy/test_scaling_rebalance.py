"""Rebalance: optimal against brute force, both forms agree, limits are kept."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.scaling_model import QueueWait
from penstock.policy.scaling_rebalance import Candidate, Rebalanced, rebalance


@st.composite
def candidates(draw: st.DrawFn, largest: int) -> Candidate:
    fewest = draw(st.integers(1, largest))
    most = draw(st.integers(fewest, largest))
    model = QueueWait(draw(st.floats(0.01, 50)), draw(st.floats(0.0, largest * 0.9)))
    return Candidate(model, fewest, most)


def problems(tasks: int, largest: int) -> st.SearchStrategy[dict[str, Candidate]]:
    return st.dictionaries(st.sampled_from("abcd"[:tasks]), candidates(largest), min_size=1)


def brute_force(tasks: dict[str, Candidate], limit_ms: float) -> int | None:
    """The least total over all combinations that meet the limit; None if none does.

    All sizes of all tasks but the last are tried, and for each the last task's sizes from the smallest.
    """
    *others, last = tasks.values()
    best: int | None = None
    for choice in itertools.product(*(range(task.fewest, task.largest() + 1) for task in others)):
        waits_ms = [task.model.wait_ms(p) for task, p in zip(others, choice, strict=True)]
        for size in range(last.fewest, last.largest() + 1):
            if best is not None and sum(choice) + size >= best:
                break
            if math.fsum([*waits_ms, last.model.wait_ms(size)]) <= limit_ms:
                best = sum(choice) + size
                break
    return best


def check_optimal(tasks: dict[str, Candidate], limit_ms: float, result: Rebalanced) -> None:
    best = brute_force(tasks, limit_ms)
    assert result.feasible == (best is not None)
    if best is not None:
        assert sum(result.replicas.values()) == best
        assert result.wait_ms <= limit_ms


@settings(max_examples=60)
@given(problems(4, 20), st.floats(0.0, 60))
def test_both_forms_are_optimal(tasks: dict[str, Candidate], limit_ms: float) -> None:
    check_optimal(tasks, limit_ms, rebalance(tasks, limit_ms, "unit"))
    check_optimal(tasks, limit_ms, rebalance(tasks, limit_ms, "variable"))


@pytest.mark.parametrize("limit_ms", [0.5, 1.0, 2.0, 4.0, 9.0])
def test_four_tasks_of_twenty_replicas(limit_ms: float) -> None:
    shapes = [(3.0, 2.5), (7.0, 4.1), (1.0, 0.3), (12.0, 6.9)]
    tasks = {f"t{i}": Candidate(QueueWait(a, b), 1, 20) for i, (a, b) in enumerate(shapes)}
    for step in ("unit", "variable"):
        check_optimal(tasks, limit_ms, rebalance(tasks, limit_ms, step))


@settings(max_examples=300)
@given(problems(4, 200), st.floats(0.001, 200))
def test_both_forms_choose_the_same_replicas(tasks: dict[str, Candidate], limit_ms: float) -> None:
    assert rebalance(tasks, limit_ms, "variable") == rebalance(tasks, limit_ms, "unit")


def test_a_tie_goes_to_the_task_named_first() -> None:
    tasks = {name: Candidate(QueueWait(4.0, 0.5), 1, 50) for name in ("a", "b")}
    for limit_ms in (9.0, 7.0, 5.0, 3.0, 1.0):
        unit = rebalance(tasks, limit_ms, "unit")
        assert unit == rebalance(tasks, limit_ms, "variable")
        assert unit.replicas["a"] >= unit.replicas["b"]


@given(problems(4, 50), st.floats(0.001, 100), st.floats(0.001, 100))
def test_a_looser_limit_never_needs_more(tasks: dict[str, Candidate], one_ms: float, two_ms: float) -> None:
    tight, loose = (rebalance(tasks, limit_ms) for limit_ms in sorted((one_ms, two_ms)))
    assert loose.feasible >= tight.feasible
    assert sum(loose.replicas.values()) <= sum(tight.replicas.values())


@given(problems(4, 50), st.floats(-5, 100))
def test_limits_of_replicas_are_kept(tasks: dict[str, Candidate], limit_ms: float) -> None:
    result = rebalance(tasks, limit_ms)
    for name, task in tasks.items():
        assert task.fewest <= result.replicas[name] <= task.largest()


@given(problems(4, 50))
def test_an_infeasible_limit_gives_all_maxima(tasks: dict[str, Candidate]) -> None:
    result = rebalance(tasks, -1.0)
    assert not result.feasible
    assert result.replicas == {name: task.most for name, task in tasks.items()}


def test_a_task_without_a_maximum_gets_what_it_needs() -> None:
    result = rebalance({"a": Candidate(QueueWait(10.0, 4.5), 1, None)}, 0.01)
    assert result.feasible
    assert result.replicas == {"a": 1005}


def test_an_infeasible_task_without_a_maximum_stays_stable() -> None:
    result = rebalance({"a": Candidate(QueueWait(10.0, 4.5), 1, None)}, 0.0)
    assert not result.feasible
    assert result.replicas == {"a": 5}
