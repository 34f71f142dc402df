"""The deduplicating sink: every item once, whatever crashed and was replayed, in bounded memory."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.io.dedup import KEPT_MARKS, DedupJsonl, Mark, dedup_jsonl, marks_path, read_marks
from tests.io.sink_context import FakeContext


def opened(directory: Path, context: FakeContext) -> DedupJsonl:
    sink = dedup_jsonl(directory)
    sink.open(context)
    return sink


def put(sink: DedupJsonl, context: FakeContext, batch: int, ids: range) -> None:
    context.batch = batch
    for number in ids:
        context.item_id = (0, number, 0)
        sink.write(number)


def written(directory: Path) -> list[int]:
    lines = [line for path in sorted(directory.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line)["item"] for line in lines]


def test_lines_hold_id_and_item(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    assert sink.by_id
    put(sink, context, 0, range(1))
    sink.close()
    assert json.loads((tmp_path / "part-00000.jsonl").read_text()) == {"id": [0, 0, 0], "item": 0}


def test_duplicates_inside_a_batch_and_of_the_two_before_are_dropped(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(3):
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        sink.flush()
    put(sink, context, 2, range(30))
    sink.close()
    assert written(tmp_path) == list(range(30))


def test_a_replayed_batch_after_a_crash_is_recognised(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 0, range(10))
    sink.flush()
    put(sink, context, 1, range(10, 17))
    # Killed here: batch 1 was neither flushed nor committed, and half a line was being written.
    with (tmp_path / "part-00000.jsonl").open("a") as file:
        file.write('{"id": [0,')
    again = FakeContext(batch=1)
    restarted = opened(tmp_path, again)
    put(restarted, again, 1, range(10, 20))
    restarted.flush()
    restarted.close()
    assert written(tmp_path) == list(range(20))


def test_killed_between_flush_and_commit(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 0, range(10))
    sink.flush()
    again = FakeContext(batch=0)
    restarted = opened(tmp_path, again)
    put(restarted, again, 0, range(15))
    restarted.flush()
    restarted.close()
    assert written(tmp_path) == list(range(15))


def test_ids_seen_by_another_replica_are_known_after_a_restart(tmp_path: Path) -> None:
    first = FakeContext(replica=3)
    sink = opened(tmp_path, first)
    put(sink, first, 0, range(10))
    other = FakeContext(replica=0)
    restarted = opened(tmp_path, other)
    put(restarted, other, 0, range(12))
    assert sorted(written(tmp_path)) == list(range(12))


def test_memory_and_marks_stay_bounded(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(50):
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        sink.flush()
        assert sum(map(len, sink._recent)) <= 30
    assert len(read_marks(tmp_path / "part-00000.jsonl")) == KEPT_MARKS
    late = FakeContext(batch=50)
    restarted = opened(tmp_path, late)
    assert sum(map(len, restarted._recent)) == 20, "only the two batches before are read back"


def test_an_idle_batch_leaves_no_mark(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 0, range(1))
    sink.flush()
    context.batch = 1
    sink.flush()
    assert [mark.batch for mark in read_marks(tmp_path / "part-00000.jsonl")] == [0]


def test_unreadable_marks_mean_that_everything_is_read(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 0, range(5))
    sink.flush()
    part = tmp_path / "part-00000.jsonl"
    assert read_marks(part) == [Mark(0, part.stat().st_size)]
    marks_path(part).write_text("{")
    late = FakeContext(batch=90)
    restarted = opened(tmp_path, late)
    put(restarted, late, 90, range(5))
    assert written(tmp_path) == list(range(5))


def test_items_without_ids_are_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path, FakeContext())
    with pytest.raises(ValueError, match="dedup_jsonl needs items with ids: declare the flow with ids=True"):
        sink.write(1)


@settings(deadline=None)
@given(
    batches=st.lists(st.integers(0, 6), min_size=1, max_size=8),
    crashes=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 6), st.booleans()), max_size=4),
)
def test_exactly_once_through_any_crashes(
    tmp_path_factory: pytest.TempPathFactory, batches: list[int], crashes: list[tuple[int, int, bool]]
) -> None:
    """Batches replayed from their beginning after a crash, at any item, before or after the flush."""
    directory = tmp_path_factory.mktemp("dedup")
    starts = [sum(batches[:n]) for n in range(len(batches) + 1)]
    waiting = Counter((batch, cut, after) for batch, cut, after in crashes)
    context = FakeContext()
    sink = opened(directory, context)
    for batch in range(len(batches)):
        pending = [key for key in waiting.elements() if key[0] == batch]
        for _, cut, after_flush in pending:
            stop = min(starts[batch] + cut, starts[batch + 1])
            put(sink, context, batch, range(starts[batch], starts[batch + 1] if after_flush else stop))
            if after_flush:
                sink.flush()
            context = FakeContext(batch=batch)
            sink = opened(directory, context)
        put(sink, context, batch, range(starts[batch], starts[batch + 1]))
        sink.flush()
    assert written(directory) == list(range(starts[-1]))
