"""Files that appear whole when their epoch is committed, and sinks that write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.io.dedup import dedup_jsonl
from penstock.io.epoch_files import HIDDEN, EpochFiles
from penstock.io.jsonl import Jsonl, jsonl
from tests.io.sink_context import FakeContext
from tests.io.sync_watch import watch_syncs

FIRST, SECOND = "5e1f00aa-00000001", "5e1f00aa-00000002"


def opened(directory: Path, attempt: str = FIRST, replica: int = 0, task: str = "out") -> Jsonl:
    sink = jsonl(directory)
    sink.open(FakeContext(task, replica, attempt=attempt))
    return sink


def prepared(sink: Jsonl, epoch: int, *items: Any) -> str:
    for item in items:
        sink.write(item)
    sink.flush()
    description = sink.prepare(epoch)
    assert description is not None
    return description


def seen(directory: Path) -> dict[str, list[Any]]:
    """Whatever a reader could find, wherever he looks."""
    return {
        path.name: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(directory.rglob("*.jsonl"))
    }


def left(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / HIDDEN).iterdir())


def test_a_file_appears_whole_at_its_commit_and_not_before(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    one = prepared(sink, 7, 1, {"a": "ä"})
    sink.write(3)
    assert seen(tmp_path) == {}
    jsonl(tmp_path / "elsewhere").commit(one)
    assert seen(tmp_path) == {"part-000000000007-00000-5e1f00aa-00000001-out.jsonl": [1, {"a": "ä"}]}
    assert str(tmp_path / next(iter(seen(tmp_path)))) == one
    jsonl(tmp_path).commit(prepared(sink, 9))
    assert [*seen(tmp_path).values()] == [[1, {"a": "ä"}], [3]], "names are in the order of epochs"
    assert sink.prepare(10) is None, "nothing was written"
    sink.close()
    assert left(tmp_path) == []


def test_a_commit_may_come_again_also_when_a_reader_has_removed_the_file(tmp_path: Path) -> None:
    description = prepared(opened(tmp_path), 1, "once")
    for _ in range(2):
        jsonl(tmp_path).commit(description)
    assert [*seen(tmp_path).values()] == [["once"]]
    Path(description).unlink()
    jsonl(tmp_path).commit(description)
    assert seen(tmp_path) == {}


def test_another_attempt_throws_away_what_is_in_no_commit(tmp_path: Path) -> None:
    later = prepared(opened(tmp_path, "5e1f00aa-00000003"), 1, "later")
    killed = opened(tmp_path, replica=3)
    prepared(killed, 1, "in no entry")
    killed.write("in no file")
    others = [opened(tmp_path, task="other"), opened(tmp_path, "aa005e1f-00000001")]
    kept = [prepared(other, 2, "not ours") for other in others]
    (tmp_path / HIDDEN / "notes.txt").touch()
    assert len(left(tmp_path)) == 6
    sink = opened(tmp_path, SECOND)
    assert left(tmp_path) == sorted(
        ["notes.txt", *(f"{Path(name).name}.prepared" for name in (*kept, later))]
    )
    jsonl(tmp_path).commit(prepared(sink, 1, "again"))
    assert [*seen(tmp_path).values()] == [["again"]]


def test_replicas_that_come_back_in_an_attempt_leave_what_is_prepared(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    first = prepared(sink, 1, 1)
    sink.close()
    sink = opened(tmp_path)
    second = prepared(sink, 2, 2)
    for description in (first, second):
        jsonl(tmp_path).commit(description)
    assert [*seen(tmp_path).values()] == [[1], [2]]


def test_a_directory_that_is_gone_is_no_commit_that_was_done(tmp_path: Path) -> None:
    description = prepared(opened(tmp_path / "out"), 1, 1)
    (tmp_path / "out").rename(tmp_path / "moved")
    with pytest.raises(FileNotFoundError, match=r"out/.uncommitted, with output that is to be committed, is"):
        jsonl(tmp_path).commit(description)


def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    description = prepared(opened(tmp_path), 1, 1)
    Path(description).write_text('"foreign"\n')
    with pytest.raises(FileExistsError, match="is there already, and not of this checkpoint"):
        jsonl(tmp_path).commit(description)
    assert [*seen(tmp_path).values()] == [["foreign"]]


def test_what_is_prepared_and_what_appears_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(tmp_path)
    synced = watch_syncs(monkeypatch)
    sink.write(1)
    sink.flush()
    assert synced == [], "it is done once, at the mark"
    description = prepared(sink, 7)
    name = Path(description).name
    begun = "part-000000000000-00000-5e1f00aa-00000001-out.jsonl.unfinished"
    assert synced == [f"{begun} > {name}.prepared", f"{name}.prepared", HIDDEN]
    synced.clear()
    jsonl(tmp_path).commit(description)
    assert synced == [f"{name}.prepared > {name}", tmp_path.name, HIDDEN]
    synced.clear()
    jsonl(tmp_path).commit(description)
    assert synced[-2:] == [tmp_path.name, HIDDEN], "who did it before may have died before it was on the disk"


def test_half_a_line_of_the_time_of_boundaries_is_cut_off(tmp_path: Path) -> None:
    part = tmp_path / "part-00002.jsonl"
    part.write_bytes(b'1\n2\n{"a": "')
    opened(tmp_path)
    assert part.read_bytes() == b"1\n2\n"


def test_ids_that_boundaries_have_not_committed_are_dropped_when_they_come_again(tmp_path: Path) -> None:
    before = FakeContext(batch=1)
    sink = dedup_jsonl(tmp_path)
    sink.open(before)
    for ordinal in range(6):
        before.batch, before.item_id = 1 + ordinal // 3, (4, ordinal, 0)
        sink.write(ordinal)
        if ordinal == 2:
            sink.flush()
    context = FakeContext(attempt=FIRST)  # the first start with marks, after the killed one
    sink = dedup_jsonl(tmp_path)
    sink.open(context)
    descriptions = []
    for epoch, ordinals in ((1, (3, 4)), (2, (5, 6)), (3, (7,))):
        assert bool(sink._found) == (epoch < 3), "all that can come again has come in epoch 2"
        for ordinal in ordinals:
            context.item_id = (4, ordinal, 0)
            sink.write(ordinal)
        descriptions.append(sink.prepare(epoch))
    sink.close()
    assert descriptions[0] is None, "all of it is in a file already"
    for description in descriptions[1:]:
        assert description is not None
        dedup_jsonl(tmp_path).commit(description)
    items = [line["item"] for lines in seen(tmp_path).values() for line in lines]
    assert sorted(items) == [0, 1, 2, 3, 4, 5, 6, 7]
    context.item_id = None
    sink.open(context)
    with pytest.raises(ValueError, match="needs items with ids"):
        sink.write(8)


def test_a_full_disk_costs_no_half_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = EpochFiles(tmp_path, "out", 0, FIRST)
    files.open()
    files.write_line(b"1")
    with monkeypatch.context() as full:

        def no_room(descriptor: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        full.setattr("os.write", no_room)
        with pytest.raises(OSError, match="No space left on device"):
            files.write_line(b"2")
    files.write_line(b"3")
    description = files.prepare(1)
    assert description is not None
    jsonl(tmp_path).commit(description)
    assert [*seen(tmp_path).values()] == [[1, 3]]
