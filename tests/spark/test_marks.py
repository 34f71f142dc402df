"""Commits by epoch marks on Spark: no pause, and state that is exact whatever ends."""

import errno
import itertools
import json
import operator
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.epochs.commits import Commit, storage_of, usable_commits
from penstock.epochs.marks import marked_entry
from penstock.epochs.storage import SystemDisk
from penstock.io.epoch_files import HIDDEN
from penstock.testing.collector import Collector
from tests.spark.items import Item, expected, numbered, wait_for_items

pytestmark = pytest.mark.spark
COUNT = 900
Counted = tuple[int, int]


def last_digit(item: Item) -> int:
    return item.index % 10


def same(item: Item) -> Item:
    return item


class Counts:
    by = state.key(int)
    seen = state.value(0)
    taken = state.per_replica(0, merge=operator.add)

    def process(self, item: Item, out: Out[Counted]) -> None:
        self.seen += 1
        self.taken += 1
        out((self.by, self.seen))


def counting(collector: Collector, replicas: Any = 2, rate: float = 300.0) -> ps.Flow:
    """Two ways from the source to the counts, one of them past a layer; `pass` has replicas that are idle."""
    flow = ps.Flow("marked")
    source = flow.source(numbered(COUNT, rate=rate, partitions=2), name="numbers")
    passed = source.map(same, name="pass", parallelism=ps.elastic(1, 3, initial=1, pool=3))
    counts = passed.by_key(last_digit).task(
        Counts, source.by_key(last_digit), name="counts", parallelism=replicas
    )
    counts.sink(collector, name="out")
    return flow


def until(met: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not met():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.02)


def commits(job: ps.Job) -> int:
    totals = job.metrics().commits
    assert totals is not None
    return totals.count


def items_read(commit: Commit) -> int:
    assert commit.state is not None
    return sum(position.ordinal for position in commit.state.entry.positions["numbers"].values())


def written_by(place: Path) -> set[int]:
    """The replicas whose files the newest entry needs for the state of keys."""
    entry = marked_entry(storage_of(place))
    assert entry is not None
    return {file.replica for file in entry.files if any(last >= 0 for _, last in file.groups)}


def check_state(job: ps.Job) -> None:
    """Against a single process: each of the items came by two ways."""
    kept = job.state("counts")
    seen = {one.key: one.value for one in kept if one.name == "seen"}
    assert seen == dict.fromkeys(range(10), 2 * COUNT // 10)
    assert sum(one.value for one in kept if one.name == "taken") == 2 * COUNT


def test_state_is_exact_after_an_abrupt_end_and_a_killed_worker_without_any_boundary(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    place = tmp_path / "checkpoint"
    settings: dict[str, Any] = {"checkpoint": place, "commit": "0.3 s", "policy": None}
    settings["keep_commits"] = 10
    job = ps.run(counting(collector), **settings)
    until(lambda: commits(job) >= 3)
    assert job.last_boundary() is None, "no source ever stood still"
    job.abandon()
    entry = marked_entry(storage_of(place))
    assert entry is not None
    read = sum(position.ordinal for position in entry.positions["numbers"].values())
    assert 0 < read < COUNT
    seen = sum(one.value for one in job.state("counts") if one.name == "seen")
    assert seen == 2 * read, "the state of an entry is that of its positions"
    with pytest.raises(ps.FlowError, match=r"its commits are epoch marks, so leave commit_by="):
        ps.run(counting(collector), checkpoint=place, commit_by="boundaries")
    before = len(collector.items())
    again = ps.run(counting(collector), **settings)
    until(lambda: commits(again) >= 2)
    os.kill(again.metrics().tasks["counts"].processes[0], signal.SIGKILL)
    assert again.await_termination(60)
    assert again.metrics().restarts == 1
    check_state(again)
    rows = collector.items()
    assert {value for key, value in rows if key == 3} == {*range(1, 2 * COUNT // 10 + 1)}
    assert len(rows) - before < 2 * COUNT, "what was committed does not come again"
    assert ps.run(counting(collector), **settings).await_termination(60)
    assert collector.items() == rows, "all is committed"
    older = [commit for commit in usable_commits(place) if items_read(commit) < COUNT][-1]
    notices: list[str] = []
    back = ps.run(counting(collector), from_commit=older.number, on_notice=notices.append, **settings)
    assert back.await_termination(60)
    check_state(back)
    assert len(collector.items()) - len(rows) == 2 * (COUNT - items_read(older))
    assert any(f"commits after {older.number} were put aside, into {place}" in words for words in notices)


def test_keys_and_values_of_replicas_change_hands_at_marks_and_with_their_pool(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    several = ps.elastic(1, 4, initial=2)
    place = tmp_path / "checkpoint"
    settings: dict[str, Any] = {"checkpoint": place, "commit": "0.2 s", "policy": None}
    job = ps.run(counting(collector, several, rate=200.0), **settings)
    for replicas in (4, 1):
        known = commits(job)
        until(lambda known=known: commits(job) >= known + 2)  # type: ignore[misc]
        job.set_active("counts", replicas)
    known = commits(job)
    until(lambda: commits(job) > known or not job.is_running)
    assert job.last_boundary() is None, "no source ever stood still"
    job.stop()
    small = ps.elastic(1, 5, initial=3, pool=3)
    again = ps.run(counting(collector, small, rate=120.0), **settings)
    until(lambda: commits(again) >= 1)
    again.set_pool("counts", 5)
    again.set_active("counts", 5)
    known = commits(again)
    until(lambda: commits(again) >= known + 2)
    assert again.is_running, "all of this is under load"
    assert written_by(place) == {*range(5)}, "each of the five has some of the state"
    again.set_pool("counts", 2)
    assert again.metrics().tasks["counts"].active == 2
    assert again.await_termination(60)
    assert again.metrics().restarts == job.metrics().restarts == 0
    assert written_by(place) == {0, 1}
    check_state(again)
    rows = collector.items()
    assert len(rows) == len(set(rows)) == 2 * COUNT, "nothing came twice: every end was committed"


def test_positions_are_committed_where_there_is_no_state_and_a_worker_is_replaced_meanwhile(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("stateless")
    source = flow.source(numbered(COUNT, rate=300.0), name="numbers")
    source.map(same, name="pass", parallelism=2).sink(collector, name="out")
    place = tmp_path / "checkpoint"
    job = ps.run(flow, checkpoint=place, commit="0.2 s", policy=None)
    for task in ("pass", "numbers"):
        known = commits(job)
        until(lambda known=known: commits(job) >= known + 2)  # type: ignore[misc]
        os.kill(job.metrics().tasks[task].processes[0], signal.SIGKILL)
    known = commits(job)
    until(lambda: commits(job) >= known + 2)
    assert job.metrics().restarts == 0, "their successors go on"
    job.abandon()
    entry = marked_entry(storage_of(place))
    assert entry is not None
    (position,) = entry.positions["numbers"].values()
    assert 0 < position.ordinal < COUNT
    assert {item.index for item in collector.items()} >= {*range(position.ordinal)}
    before = len(collector.items())
    again = ps.run(flow, checkpoint=place, commit="0.2 s", policy=None)
    wait_for_items(collector, before + 1)
    assert again.await_termination(60)
    assert {*collector.items()} == expected(COUNT)
    assert min(item.index for item in collector.items()[before:]) == position.ordinal


class NoRoomOnce(Counts):
    """The disk of its worker is full once, when it writes state for the fourth time."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def open(self, context: Any) -> None:
        write, calls = SystemDisk.write_new, itertools.count()

        def write_new(disk: SystemDisk, path: Path, content: bytes) -> None:
            if next(calls) == 3 and not self.witness.exists():
                self.witness.touch()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(disk, path, content)

        SystemDisk.write_new = write_new  # type: ignore[assignment,method-assign]  # in the worker alone


def test_a_disk_that_is_full_for_a_moment_sends_the_flow_back_to_its_last_commit(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("full")
    source = flow.source(numbered(COUNT, rate=600.0, partitions=2), name="numbers")
    body = NoRoomOnce(tmp_path / "was full")
    source.by_key(last_digit).task(body, name="counts").sink(collector, name="out")
    notices: list[str] = []
    place = tmp_path / "checkpoint"
    job = ps.run(flow, checkpoint=place, commit="0.1 s", on_notice=notices.append)
    assert job.await_termination(60)
    assert job.metrics().restarts == 1
    words = f"writing its state failed, in the checkpoint {place}/epochs: [Errno 28] No space left on device"
    assert any(words in notice for notice in notices), notices
    seen = {one.key: one.value for one in job.state("counts") if one.name == "seen"}
    assert seen == dict.fromkeys(range(10), COUNT // 10)


def read_before(place: Path) -> list[Item]:
    """The items that the newest entry covers."""
    entry = marked_entry(storage_of(place))
    assert entry is not None
    splits = entry.positions["numbers"]
    return [Item(int(split[0]), index) for split in splits for index in range(splits[split].ordinal)]


def filed(directory: Path, *, with_ids: bool = False) -> list[Item]:
    """Whatever a reader finds."""
    texts = [file.read_text() for file in directory.rglob("*.jsonl")]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    return sorted(Item(*(line["item"] if with_ids else line)) for line in lines)


def test_files_have_every_item_once_after_an_abrupt_end_and_a_killed_sink(
    spark: SparkSession, tmp_path: Path
) -> None:
    count = 600
    flow = ps.Flow("filed", ids=True)
    source = flow.source(numbered(count, rate=300.0, partitions=2), name="numbers")
    passed = source.map(same, name="pass", parallelism=2)
    passed.sink(ps.jsonl(tmp_path / "files"), name="files", parallelism=2)
    passed.sink(ps.dedup_jsonl(tmp_path / "once"), name="once")
    place = tmp_path / "checkpoint"
    settings: dict[str, Any] = {"checkpoint": place, "commit": "0.2 s", "policy": None}
    job = ps.run(flow, **settings)
    until(lambda: commits(job) >= 2)
    job.abandon()
    committed = sorted(read_before(place))
    assert 0 < len(committed) < count
    assert filed(tmp_path / "files") == filed(tmp_path / "once", with_ids=True) == committed
    entry = marked_entry(storage_of(place))
    assert entry is not None
    done = [Path(handle.content) for handle in entry.handles]
    hidden = [file.parent / HIDDEN / f"{file.name}.prepared" for file in done]
    for seen, unseen in zip(done, hidden, strict=True):
        seen.replace(unseen)  # as if the driver had died with its entry, before it had renamed any
    in_no_entry = hidden[0].with_name(hidden[0].name.replace(f"{entry.epoch:012d}", "9" * 12))
    in_no_entry.write_text("[0, 0]\n")
    again = ps.run(flow, **settings)
    assert all(file.exists() for file in done), "before anything else happens"
    until(lambda: commits(again) >= 2)
    os.kill(again.metrics().tasks["files"].processes[0], signal.SIGKILL)
    assert again.await_termination(60)
    assert again.metrics().restarts == 1
    assert filed(tmp_path / "files") == filed(tmp_path / "once", with_ids=True) == sorted(expected(count, 2))
    for directory in ("files", "once"):
        assert not [*(tmp_path / directory / HIDDEN).iterdir()]


def test_a_replica_of_a_sink_that_is_no_longer_needed_leaves_nothing_untold(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow = ps.Flow("fewer")
    source = flow.source(numbered(10_000, rate=200.0), name="numbers")
    source.sink(ps.jsonl(tmp_path / "files"), name="files", parallelism=ps.elastic(1, 2, initial=2))
    place = tmp_path / "checkpoint"
    job = ps.run(flow, checkpoint=place, commit="1 min", policy=None)
    until(lambda: len([*(tmp_path / "files" / HIDDEN).glob("*.unfinished")]) == 2)
    job.set_active("files", 1)
    time.sleep(1.5)  # longer than a replica is kept that nobody sends to
    job.stop()
    assert filed(tmp_path / "files") == sorted(read_before(place))
