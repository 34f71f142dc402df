"""What each group of keys has to do, from what a snapshot tells."""

import pytest

from penstock.policy.group_loads import even_owners, group_loads, key_spans
from penstock.stats.snapshot import KeyGroupStats, KeySpanStats, TaskStats


def task(service_ms: float | None = 2.0) -> TaskStats:
    return TaskStats(
        kind="task",
        parallelism=2,
        elastic=True,
        service_ms=service_ms,
        key_groups=[KeyGroupStats(group=1, processed=60, useful_s=0.3), KeyGroupStats(group=7, processed=20)],
        key_table=[
            KeySpanStats(first=0, last=3, replica=0, processed=90),
            KeySpanStats(first=4, last=7, replica=1, processed=20),
        ],
    )


def test_heavy_groups_are_known_and_others_share_what_is_left() -> None:
    found = group_loads(task())
    assert found is not None
    assert found.owners == [0, 0, 0, 0, 1, 1, 1, 1]
    assert found.loads == pytest.approx([0.02, 0.3, 0.02, 0.02, 0, 0, 0, 20])
    by_items = group_loads(task(None))
    assert by_items is not None
    assert by_items.loads == [10, 60, 10, 10, 0, 0, 0, 20]
    assert by_items.heaviest == (1, 60 / 110)


def test_nothing_is_known_without_a_table_or_items() -> None:
    assert group_loads(TaskStats(kind="task", parallelism=2)) is None
    idle = [KeySpanStats(first=0, last=7, replica=0, processed=0)]
    assert group_loads(TaskStats(kind="task", parallelism=2, key_table=idle)) is None


def test_owners_as_spans() -> None:
    assert even_owners(5, 2) == [0, 0, 0, 1, 1]
    assert key_spans([0, 0, 1, 0]) == [(0, 1, 0), (2, 2, 1), (3, 3, 0)]
