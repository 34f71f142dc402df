"""What a decision changed becomes a mark; what stays the same does not."""

from penstock.policy.decision import Refusal
from penstock.report.decision_marks import MARKS, marks
from tests.report.recordings import decision, history, snapshot


def said(*decisions: object) -> list[tuple[float, str, str]]:
    run = history(*(snapshot(replicas=2) for _ in decisions), decided=decisions)  # type: ignore[arg-type]
    return [(mark.at_s, mark.kind, mark.text) for mark in marks(run)]


def test_every_kind_of_change() -> None:
    assert said(decision(2), decision(3), decision(1)) == [
        (10, "more", "work: 2 → 3 replicas"),
        (15, "fewer", "work: 2 → 1 replicas"),
    ]
    assert said(decision(batch_lifetime_ms={"source->work": 2.1})) == []
    assert said(decision(batch_lifetime_ms={"source->work": 9.0})) == [
        (5, "lifetime", "source->work: lifetime 2 → 9 ms")
    ]
    assert said(decision(chains=[["work", "sink"]])) == [(5, "chain", "chains: work + sink")]
    assert said(decision(chains=[["work"], ["sink"]])) == said(decision(chains=[["work"]])) == []
    assert said(decision(key_tables={"work": [(0, 4095, 1)]})) == [(5, "keys", "work: keys divided anew")]
    refused = Refusal(guard="cool_down", task="work", before=2, after=3, why="too soon")
    assert said(decision(refused=[refused])) == [(5, "refused", "work: held back by cool_down")]
    assert said(decision(feasible=False)) == [(5, "infeasible", "cannot be enough")]


def test_kinds_differ_in_shape_and_not_only_in_colour() -> None:
    assert len({look.marker for look in MARKS.values()}) == len(MARKS)
