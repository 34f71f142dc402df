"""What waits in queues, in a snapshot."""

import msgspec
import pytest

from penstock.observe.queues import with_queues
from penstock.stats.snapshot import ChannelStats, QueueStats, Snapshot, StreamStats, TaskStats
from penstock.wire.reports import QueuedChannel

NAMES = ["a->c", "b->c", "c->d"]


def joined(replicas: int = 2) -> Snapshot:
    """Two tasks that send to the same; what is known so far follows from counts."""
    counted = TaskStats(kind="task", parallelism=replicas, backlog_total=7.0)
    return Snapshot(
        interval_s=1.0,
        tasks={
            "a": TaskStats(kind="source", parallelism=1),
            "b": TaskStats(kind="source", parallelism=1),
            "c": counted,
            "d": msgspec.structs.replace(counted, kind="sink"),
        },
        streams=[
            StreamStats(origin="a", receiver="c"),
            StreamStats(origin="b", receiver="c"),
            StreamStats(origin="c", receiver="d", queue=QueueStats(items=7.0)),
        ],
    )


def test_queues_add_up_by_stream_and_task() -> None:
    waiting = {
        ("c", 0): [QueuedChannel(1, 0, 1, 4, 80, 3.0), QueuedChannel(0, 0, 2, 10, 300, 9.0)],
        ("c", 1): [QueuedChannel(0, 0, 1, 5, 200, 20.0)],
    }
    found = with_queues(joined(), NAMES, waiting)
    assert found.tasks["c"].backlog_total == 19
    assert found.stream("a->c").queue == QueueStats(items=15, envelopes=3, bytes=500, age_ms=20.0)
    assert found.stream("a->c").channels == [
        ChannelStats(sender=0, receiver=0, queue=QueueStats(items=10, envelopes=2, bytes=300, age_ms=9.0)),
        ChannelStats(sender=0, receiver=1, queue=QueueStats(items=5, envelopes=1, bytes=200, age_ms=20.0)),
    ]
    assert found.stream("b->c").queue == QueueStats(items=4, envelopes=1, bytes=80, age_ms=3.0)


def test_a_queue_that_was_seen_empty_is_empty_and_not_unknown() -> None:
    found = with_queues(joined(), NAMES, {("c", 0): [], ("c", 1): []})
    assert found.tasks["c"].backlog_total == 0
    assert found.stream("a->c").queue == QueueStats(items=0, envelopes=0, bytes=0, age_ms=0.0)
    assert found.stream("a->c").channels is None


@pytest.mark.parametrize("told", [{}, {("d", 0): [QueuedChannel(2, 0, 1, 3, 80, 1.0)]}])
def test_where_a_replica_has_not_told_counts_stay(told: dict[tuple[str, int], list[QueuedChannel]]) -> None:
    assert with_queues(joined(), NAMES, told) == joined()


def test_replicas_that_are_on_their_way_out_count_as_long_as_they_tell() -> None:
    waiting = {("c", 0): [], ("c", 1): [QueuedChannel(0, 0, 1, 5, 200, 20.0)]}
    assert with_queues(joined(replicas=1), NAMES, waiting).tasks["c"].backlog_total == 5
