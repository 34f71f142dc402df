"""The deduplicating sink: every item once, whatever crashed and was replayed, in bounded memory."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.io.dedup import DedupJsonl, dedup_jsonl, floor_path, read_floor
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
    put(sink, context, 1, range(1))
    sink.close()
    assert json.loads((tmp_path / "part-00000.jsonl").read_text()) == {"id": [0, 0, 0], "item": 0}


def test_duplicates_inside_a_batch_and_of_the_two_before_are_dropped(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(1, 4):
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        sink.flush()
    put(sink, context, 3, range(10, 40))
    sink.close()
    assert written(tmp_path) == list(range(10, 40))


def test_a_replayed_batch_after_a_crash_is_recognised(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 1, range(10))
    sink.flush()
    put(sink, context, 2, range(10, 17))
    # Killed here: batch 2 was neither flushed nor committed, and half a line was being written.
    with (tmp_path / "part-00000.jsonl").open("a") as file:
        file.write('{"id": [0,')
    again = FakeContext()
    restarted = opened(tmp_path, again)
    put(restarted, again, 1, range(10, 20))
    restarted.close()
    assert written(tmp_path) == list(range(20))


def test_killed_between_flush_and_commit_again_and_again(tmp_path: Path) -> None:
    for reach in (10, 25, 30, 40, 41, 60):
        context = FakeContext()
        sink = opened(tmp_path, context)
        put(sink, context, 1, range(reach))
        sink.flush()
    assert written(tmp_path) == list(range(60))


def test_ids_seen_by_another_replica_are_known_after_a_restart(tmp_path: Path) -> None:
    first = FakeContext(replica=3)
    sink = opened(tmp_path, first)
    put(sink, first, 1, range(10))
    other = FakeContext(replica=0)
    restarted = opened(tmp_path, other)
    put(restarted, other, 1, range(12))
    assert sorted(written(tmp_path)) == list(range(12))


def test_memory_stays_bounded_and_only_two_batches_are_read_back(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(1, 50):
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        sink.flush()
        assert sum(map(len, sink._recent)) <= 30
    restarted = opened(tmp_path, FakeContext())
    assert len(restarted._found) == 20


def test_ids_found_are_kept_until_the_replay_has_passed_them_however_it_is_cut(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 1, range(100))
    again = FakeContext()
    restarted = opened(tmp_path, again)
    for batch in range(1, 30):
        put(restarted, again, batch, range(batch * 5 - 5, batch * 5))
        restarted.flush()
    assert written(tmp_path) == list(range(145))
    assert restarted._found == set()
    assert sum(map(len, restarted._recent)) <= 15
    assert len(opened(tmp_path, FakeContext())._found) == 10


def test_an_unreadable_floor_means_that_everything_is_read(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(1, 5):
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        sink.flush()
    part = tmp_path / "part-00000.jsonl"
    assert 0 < read_floor(part) < part.stat().st_size
    floor_path(part).write_text("?")
    restarted = opened(tmp_path, FakeContext())
    assert len(restarted._found) == 40


def test_flush_after_close_does_nothing(tmp_path: Path) -> None:
    sink = opened(tmp_path, FakeContext())
    sink.close()
    sink.flush()
    sink.close()


def test_items_without_ids_are_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path, FakeContext())
    with pytest.raises(ValueError, match="dedup_jsonl needs items with ids: declare the flow with ids=True"):
        sink.write(1)


@settings(deadline=None)
@given(
    runs=st.lists(
        st.tuples(
            st.lists(st.integers(0, 6), max_size=5),  # sizes of the batches this run completes
            st.integers(0, 6),  # items of the batch it is killed in
            st.booleans(),  # whether that batch was flushed
            st.booleans(),  # whether the last complete batch got into the checkpoint
        ),
        min_size=1,
        max_size=6,
    ),
    replicas=st.integers(1, 3),
)
def test_exactly_once_through_any_crashes(
    tmp_path_factory: pytest.TempPathFactory,
    runs: list[tuple[list[int], int, bool, bool]],
    replicas: int,
) -> None:
    """Each run replays from the last commit, with batches of other sizes and another number of replicas."""
    directory = tmp_path_factory.mktemp("dedup")
    committed = reached = 0
    for number, (sizes, last, flushed, kept) in enumerate(runs):
        width = 1 + (number % replicas)
        contexts = [FakeContext(replica=replica) for replica in range(width)]
        sinks = [opened(directory, context) for context in contexts]
        at = committed
        for batch, size in enumerate([*sizes, last], start=1):
            if batch > 1 and (batch <= len(sizes) or kept):
                committed = at
            for replica in range(width):
                first = at + (replica - at) % width
                contexts[replica].batch = batch
                put(sinks[replica], contexts[replica], batch, range(first, at + size, width))
                if batch <= len(sizes) or flushed:
                    sinks[replica].flush()
            at += size
        reached = max(reached, at)
    assert sorted(written(directory)) == list(range(reached))
