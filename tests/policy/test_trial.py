"""A change on trial."""

import msgspec
import pytest

from penstock.policy.trial import Trial, Verdict, trial_of
from penstock.stats.snapshot import TaskStats
from tests.policy.linear_flows import WORD_COUNT, LinearFlow

BEFORE, AFTER = {"flat_map": 12, "count": 24}, {"flat_map": 10, "count": 20}


def trial() -> Trial:
    made = trial_of(WORD_COUNT.snapshot(BEFORE), AFTER)
    assert made is not None
    return made


def test_nothing_changed_is_no_trial() -> None:
    assert trial_of(WORD_COUNT.snapshot(BEFORE), BEFORE) is None


@pytest.mark.parametrize(
    ("parallelism", "verdict"),
    [(BEFORE, Verdict.PENDING), (AFTER, Verdict.GOOD), ({"flat_map": 3, "count": 3}, Verdict.UNKNOWN)],
)
def test_verdict(parallelism: dict[str, int], verdict: Verdict) -> None:
    assert trial().judge(WORD_COUNT.snapshot(parallelism), 0.1, 0.1) is verdict


def test_worse_when_less_of_the_same_load_is_delivered() -> None:
    made = trial_of(WORD_COUNT.snapshot(BEFORE), {"flat_map": 5, "count": 20})
    assert made is not None
    assert made.judge(WORD_COUNT.snapshot({"flat_map": 5, "count": 20}), 0.1, 0.1) is Verdict.WORSE


def test_another_load_proves_nothing() -> None:
    heavier = LinearFlow({"source": 3e6 / 60}, WORD_COUNT.operators, WORD_COUNT.edges)
    assert trial().judge(heavier.snapshot(AFTER), 0.1, 0.1) is Verdict.UNKNOWN


def test_what_is_not_measured_proves_nothing() -> None:
    snapshot = WORD_COUNT.snapshot(AFTER)
    tasks = {
        name: TaskStats(
            kind=task.kind, parallelism=task.parallelism, elastic=task.elastic, rate_total=task.rate_total
        )
        for name, task in snapshot.tasks.items()
    }
    bare = msgspec.structs.replace(snapshot, tasks=tasks)
    assert trial().judge(bare, 0.1, 0.1) is Verdict.UNKNOWN
