"""Parts of a run, and what changed in it."""

from penstock.evaluation.series import (
    changes,
    cores,
    mean,
    part_of,
    received_per_s,
    replicas,
    sent_per_s,
    settled,
    within,
)
from tests.report.recordings import history, snapshot

RUN = history(*(snapshot(rate=100.0 * n, replicas=n) for n in (1, 1, 3, 3, 2)))


def test_values_of_every_interval() -> None:
    assert replicas(RUN, "work", "sink") == [2, 2, 4, 4, 3]
    assert sent_per_s(RUN) == [100, 100, 300, 300, 200]
    assert received_per_s(RUN) == [100.0] * 5
    assert cores(RUN) == [1.0] * 5
    assert changes(RUN, "work") == [(0.0, (1,)), (10.0, (3,)), (20.0, (2,))]


def test_intervals_count_that_lie_whole_in_a_span() -> None:
    assert within(RUN, 5, 20) == [1, 2, 3]
    assert within(RUN, 6, 19) == [2]
    assert [s.tasks["work"].parallelism for s in part_of(RUN, [2, 4]).snapshots] == [3, 2]


def test_a_run_has_settled_when_its_start_is_over_and_a_short_one_never() -> None:
    assert len(settled(RUN).snapshots) == 1
    assert len(settled(history(snapshot())).snapshots) == 1


def test_the_mean_is_that_of_what_is_known() -> None:
    assert mean([1.0, None, 3.0]) == 2.0
    assert mean([None]) is None
