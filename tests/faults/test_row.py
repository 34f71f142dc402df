"""What the trials of a row come to."""

import json

import pytest

from penstock.bench.harness import Check
from penstock.faults.bed import Bed
from penstock.faults.row import Outcome, Ran, Row


def nothing(bed: Bed) -> Outcome:
    return Outcome({}, [])


def row(recovers_in_s: float | None = None) -> Row:
    return Row("named", "something breaks", "local", nothing, recovers_in_s)


def outcome(lost: float, recovered_s: float | None = None) -> Outcome:
    return Outcome({"items": 10}, [Check("lost", lost, "==", 0)], recovered_s)


def test_one_trial_that_fails_fails_the_row() -> None:
    result = Ran(row(), 7, [outcome(0), outcome(3), outcome(0)]).result()
    assert not result.ok
    assert [(check.name, check.value) for check in result.checks] == [("lost", 3)]
    said = json.loads(result.to_json())
    assert said["bench"] == "faults named"
    assert said["figures"]["seed"] == 7
    assert said["figures"]["trials"] == [{"items": 10}] * 3


@pytest.mark.parametrize(
    ("recoveries", "ok"), [((1.0, 2.0, 9.0), True), ((1.0, 4.0, 9.0), False), ((1.0, None, 2.0), False)]
)
def test_the_median_of_recoveries_counts_and_all_must_be_known(
    recoveries: tuple[float | None, ...], ok: bool
) -> None:
    assert Ran(row(3.0), 7, [outcome(0, one) for one in recoveries]).result().ok is ok


def test_a_row_that_cannot_be_tried_here_says_so() -> None:
    result = Ran(row(3.0), 7, [], "no time namespaces").result()
    assert result.ok
    assert result.figures["skipped"] == "no time namespaces"
