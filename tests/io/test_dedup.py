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


def put(sink: DedupJsonl, context: FakeContext, batch: int, ids: range, origin: int = 0) -> None:
    context.batch = batch
    for number in ids:
        context.item_id = (origin, number, 0)
        sink.write(number)


def remembered(sink: DedupJsonl) -> int:
    return len(sink._ids) + sum(len(found.ids) for found in sink._found)


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


def test_duplicates_inside_a_batch_are_dropped(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(1, 4):
        for _ in range(2):
            put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        sink.flush()
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


def test_ids_of_the_running_batch_are_all_that_is_remembered_and_read_back(tmp_path: Path) -> None:
    """When a batch begins, the one before it is committed and does not come again."""
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(1, 50):
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        assert remembered(sink) == 10
        sink.flush()
    assert remembered(opened(tmp_path, FakeContext())) == 10


def test_the_floor_is_where_the_flushed_batch_began(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    part = tmp_path / "part-00000.jsonl"
    for batch in range(1, 5):
        begin = part.stat().st_size
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        assert read_floor(part) <= begin
        sink.flush()
        assert read_floor(part) == begin
    context.batch = 5
    sink.flush()
    assert read_floor(part) == part.stat().st_size, "an empty batch"


def test_the_floor_of_a_replaced_worker_stays_below_what_its_predecessor_wrote(tmp_path: Path) -> None:
    """A worker dies inside a batch: only what it had not acknowledged comes again, and all if all crashes."""
    killed = FakeContext()
    put(opened(tmp_path, killed), killed, 1, range(10))
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 1, range(8, 12))
    sink.flush()
    assert read_floor(tmp_path / "part-00000.jsonl") == 0
    again = FakeContext()
    put(opened(tmp_path, again), again, 1, range(15))
    assert written(tmp_path) == list(range(15))


def test_ids_found_are_kept_until_the_replay_has_passed_them_however_it_is_cut(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    put(sink, context, 1, range(100))
    again = FakeContext()
    restarted = opened(tmp_path, again)
    assert remembered(restarted) == 100
    for batch in range(1, 30):
        put(restarted, again, batch, range(batch * 5 - 5, batch * 5))
        restarted.flush()
    assert written(tmp_path) == list(range(145))
    assert remembered(restarted) == 5
    assert remembered(opened(tmp_path, FakeContext())) == 5


def test_ids_found_in_files_of_others_do_not_hold_the_floor_of_this_one(tmp_path: Path) -> None:
    """In a forward stream an origin stays with its replica: nothing of the other's ids ever comes here."""
    for replica in range(2):
        context = FakeContext(replica=replica)
        put(opened(tmp_path, context), context, 1, range(10), origin=replica)
    contexts = [FakeContext(replica=replica) for replica in range(2)]
    sinks = [opened(tmp_path, context) for context in contexts]
    for batch in range(1, 4):
        for replica, sink in enumerate(sinks):
            put(sink, contexts[replica], batch, range(batch * 10 - 5, batch * 10 + 5), origin=replica)
            sink.flush()
    part = tmp_path / "part-00000.jsonl"
    assert len(part.read_bytes()[read_floor(part) :].splitlines()) == 10, "the last batch"


def test_an_unreadable_floor_means_that_everything_is_read(tmp_path: Path) -> None:
    context = FakeContext()
    sink = opened(tmp_path, context)
    for batch in range(1, 5):
        put(sink, context, batch, range(batch * 10, batch * 10 + 10))
        sink.flush()
    part = tmp_path / "part-00000.jsonl"
    assert 0 < read_floor(part) < part.stat().st_size
    floor_path(part).write_text("?")
    assert remembered(opened(tmp_path, FakeContext())) == 40


def test_flush_after_close_does_nothing(tmp_path: Path) -> None:
    sink = opened(tmp_path, FakeContext())
    sink.close()
    sink.flush()
    sink.close()


def test_items_without_ids_are_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path, FakeContext())
    with pytest.raises(ValueError, match="dedup_jsonl needs items with ids: declare the flow with ids=True"):
        sink.write(1)


class Replica:
    """A sink in its worker, which may die at any item and leave half a line."""

    def __init__(self, directory: Path, number: int) -> None:
        self.context = FakeContext(replica=number)
        self._directory = directory
        self.sink = opened(directory, self.context)

    def take(self, batch: int, item_id: tuple[int, ...]) -> None:
        self.context.batch, self.context.item_id = batch, item_id
        self.sink.write(list(item_id))

    def die(self, torn: bytes) -> None:
        assert self.sink._part is not None
        self.sink._part.close()
        with (self._directory / f"part-{self.context.replica:05d}.jsonl").open("ab") as file:
            file.write(torn)

    def be_replaced(self, torn: bytes) -> None:
        self.die(torn)
        self.context = FakeContext(replica=self.context.replica)
        self.sink = opened(self._directory, self.context)


SIZES = st.tuples(st.integers(0, 5), st.integers(0, 5))  # items of each of two origins in a batch
DEATHS = st.lists(
    st.tuples(
        st.integers(0, 4),  # in which batch of a run
        st.integers(0, 20),  # after which item of it
        st.integers(0, 8),  # how many items were not acknowledged: they come again
        st.booleans(),  # whether it is the worker of the sink that dies, or one before it
    ),
    max_size=3,
)


@settings(deadline=None, max_examples=300)
@given(
    runs=st.lists(
        st.tuples(
            st.lists(SIZES, max_size=4),  # the batches this run commits
            SIZES,  # what it read of the batch it is killed in
            st.integers(0, 3),  # how many replicas had flushed that batch
            DEATHS,
        ),
        min_size=1,
        max_size=6,
    ),
    replicas=st.integers(1, 3),
    forward=st.booleans(),
    torn=st.sampled_from([b"", b'{"id": [0,']),
)
def test_exactly_once_through_any_crashes(
    tmp_path_factory: pytest.TempPathFactory,
    runs: list[tuple[list[tuple[int, int]], tuple[int, int], int, list[tuple[int, int, int, bool]]]],
    replicas: int,
    forward: bool,
    torn: bytes,
) -> None:
    """Each run goes on from the last commit, with batches of other sizes and another number of replicas.

    A batch has Spark's number, and begins when the one before it is committed. An item makes two at the sink.
    """

    def replica_of(item_id: tuple[int, ...], width: int) -> int:
        return (item_id[0] if forward else sum(item_id)) % width

    directory = tmp_path_factory.mktemp("dedup")
    committed, reached, batch = [0, 0], [0, 0], 0
    for number, (complete, last, flushed, deaths) in enumerate(runs):
        width = 1 + (number % replicas)
        sinks = [Replica(directory, replica) for replica in range(width)]
        for index, sizes in enumerate([*complete, last]):
            ids = [
                (origin, ordinal, child)
                for origin, size in enumerate(sizes)
                for ordinal in range(committed[origin], committed[origin] + size)
                for child in range(2)
            ]
            for place, item_id in enumerate(ids):
                sinks[replica_of(item_id, width)].take(batch, item_id)
                for dies_in, after, unacknowledged, at_the_sink in deaths:
                    if (dies_in, after) != (index, place):
                        continue
                    if at_the_sink:
                        sinks[replica_of(item_id, width)].be_replaced(torn)
                    for again in ids[max(0, place - unacknowledged) : place + 1]:
                        sinks[replica_of(again, width)].take(batch, again)
            for origin, size in enumerate(sizes):
                reached[origin] = max(reached[origin], committed[origin] + size)
            for sink in sinks[: width if index < len(complete) else flushed]:
                sink.context.batch = batch
                sink.sink.flush()
            if index < len(complete):
                committed = [begin + size for begin, size in zip(committed, sizes, strict=True)]
                batch += 1
        for sink in sinks:
            sink.die(torn)
    lines = [
        line for path in directory.glob("*.jsonl") for line in path.read_bytes().splitlines(keepends=True)
    ]
    found = sorted(json.loads(line)["item"] for line in lines if line.endswith(b"\n"))
    assert found == [
        [origin, ordinal, child]
        for origin, end in enumerate(reached)
        for ordinal in range(end)
        for child in range(2)
    ]
