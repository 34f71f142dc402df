"""A change on trial."""

import msgspec
import pytest

from penstock.policy.trial import Trial, Verdict, trial_of
from penstock.stats.snapshot import Snapshot, TaskStats
from tests.policy.linear_flows import WORD_COUNT, LinearFlow, Operator

BEFORE, AFTER = {"flat_map": 12, "count": 24}, {"flat_map": 10, "count": 20}


def trial() -> Trial:
    made = trial_of(WORD_COUNT.snapshot(BEFORE), AFTER)
    assert made is not None
    return made


def test_nothing_changed_is_no_trial() -> None:
    assert trial_of(WORD_COUNT.snapshot(BEFORE), BEFORE) is None


def verdicts(made: Trial | None, *snapshots: Snapshot, otherwise_bad: bool = False) -> list[Verdict]:
    found = []
    for snapshot in snapshots:
        assert made is not None
        verdict, made = made.judge(snapshot, 0.1, 0.1, otherwise_bad=otherwise_bad)
        found.append(verdict)
    return found


@pytest.mark.parametrize(
    ("parallelism", "verdict"),
    [(BEFORE, Verdict.PENDING), (AFTER, Verdict.GOOD), ({"flat_map": 3, "count": 3}, Verdict.UNKNOWN)],
)
def test_verdict(parallelism: dict[str, int], verdict: Verdict) -> None:
    assert verdicts(trial(), WORD_COUNT.snapshot(parallelism)) == [verdict]


SMALL = {"flat_map": 5, "count": 20}


def test_worse_when_less_of_the_same_load_is_delivered_three_times() -> None:
    made = trial_of(WORD_COUNT.snapshot(BEFORE), SMALL)
    found = verdicts(made, *[WORD_COUNT.snapshot(SMALL)] * 3)
    assert found == [Verdict.PENDING, Verdict.PENDING, Verdict.WORSE]


def test_a_pause_while_the_change_is_made_is_not_its_effect() -> None:
    made = trial_of(WORD_COUNT.snapshot(BEFORE), SMALL)
    slow = WORD_COUNT.snapshot(SMALL)
    stopped = LinearFlow(WORD_COUNT.sources, {n: Operator(1e-300) for n in SMALL}, WORD_COUNT.edges)
    still = stopped.snapshot(SMALL)
    silent = msgspec.structs.replace(
        still,
        tasks={
            name: msgspec.structs.replace(task, emitted_total=0.0, instances=None)
            for name, task in still.tasks.items()
        },
    )
    found = verdicts(made, slow, slow, silent, slow, slow)
    assert found == [Verdict.PENDING] * 5


def test_other_evidence_counts_too() -> None:
    found = verdicts(trial(), *[WORD_COUNT.snapshot(AFTER)] * 3, otherwise_bad=True)
    assert found[-1] is Verdict.WORSE


def test_another_load_proves_nothing() -> None:
    heavier = LinearFlow({"source": 3e6 / 60}, WORD_COUNT.operators, WORD_COUNT.edges)
    assert verdicts(trial(), heavier.snapshot(AFTER)) == [Verdict.UNKNOWN]


def test_what_is_not_measured_proves_nothing() -> None:
    snapshot = WORD_COUNT.snapshot(AFTER)
    tasks = {
        name: TaskStats(
            kind=task.kind, parallelism=task.parallelism, elastic=task.elastic, rate_total=task.rate_total
        )
        for name, task in snapshot.tasks.items()
    }
    assert verdicts(trial(), msgspec.structs.replace(snapshot, tasks=tasks)) == [Verdict.UNKNOWN]
