"""What somebody who looks from time to time sees of commits by epoch marks."""

from dataclasses import replace

from penstock.observe.committed import Committed
from penstock.observe.reported import CommitTotals
from penstock.stats.snapshot import CommitStats, Snapshot, TaskStats, decode_snapshot, encode_snapshot

EMPTY = Snapshot(
    interval_s=1,
    tasks={
        "count": TaskStats(kind="task", parallelism=1),
        "out": TaskStats(kind="sink", parallelism=1),
    },
)


def test_commits_since_the_last_look_and_the_last_of_all() -> None:
    totals = [CommitTotals(count=5, epoch=5, last_s=9.0, took_ms=30.0)]
    looking = Committed(lambda: totals[-1], lambda: 12.5)
    totals.append(replace(totals[-1].voided().committed(7, 11.0, 40.0, {"count": 900}), rollbacks=1))
    seen = looking.seen(EMPTY)
    assert seen.commits == CommitStats(epoch=7, age_s=1.5, took_ms=40.0, committed=1, void=1, rollbacks=1)
    assert (seen.tasks["count"].state_bytes, seen.tasks["out"].state_bytes) == (900, None)
    assert decode_snapshot(encode_snapshot(seen)) == seen
    again = looking.seen(EMPTY).commits
    assert again is not None
    assert (again.epoch, again.committed, again.void, again.rollbacks) == (7, 0, 0, 0)


def test_a_flow_that_has_committed_nothing_yet_has_no_last_commit() -> None:
    assert Committed(CommitTotals).seen(EMPTY).commits == CommitStats()


def test_where_commits_are_boundaries_nothing_is_told() -> None:
    assert Committed(lambda: None).seen(EMPTY) == EMPTY
