"""What a commit may rely on: the files of a sink are on the disk when `flush` returns, in the right order."""

from pathlib import Path

import pytest

from penstock.io.dedup import dedup_jsonl, read_floor
from penstock.io.jsonl import jsonl
from penstock.io.part_file import PartFile
from tests.io.sink_context import FakeContext
from tests.io.sync_watch import watch_syncs


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return watch_syncs(monkeypatch)


def test_a_file_is_synced_before_the_directory_that_names_it(tmp_path: Path, synced: list[str]) -> None:
    (tmp_path / "out").mkdir()
    part = PartFile.append_to(tmp_path / "out" / "part")
    part.write_line(b"one")
    assert synced == []
    part.sync()
    assert synced == ["part", "out"]
    part.write_line(b"two")
    part.sync()
    assert synced == ["part", "out", "part"], "the directory names the file already"


def test_nothing_is_synced_when_nothing_was_written(tmp_path: Path, synced: list[str]) -> None:
    part = PartFile.append_to(tmp_path / "part")
    part.write_line(b"one")
    part.sync()
    synced.clear()
    part.sync()
    assert synced == []


def test_directories_that_were_made_are_named_by_their_parents_for_good(
    tmp_path: Path, synced: list[str]
) -> None:
    PartFile.append_to(tmp_path / "new" / "newer" / "part").sync()
    assert synced == [tmp_path.name, "new", "part", "newer"]


def test_what_a_killed_process_left_unsynced_is_synced_by_its_successor(
    tmp_path: Path, synced: list[str]
) -> None:
    """Acknowledged items do not come again when a worker is replaced, so its successor answers for them."""
    PartFile.append_to(tmp_path / "part").write_line(b"acknowledged")
    PartFile.append_to(tmp_path / "part").sync()
    assert synced == ["part", tmp_path.name]


def test_flush_and_close_of_jsonl_sync(tmp_path: Path, synced: list[str]) -> None:
    sink = jsonl(tmp_path)
    sink.flush()
    sink.open(FakeContext())
    sink.write(1)
    sink.flush()
    assert synced == ["part-00000.jsonl", tmp_path.name]
    sink.flush()
    sink.write(2)
    assert len(synced) == 2
    sink.close()
    assert synced[2:] == ["part-00000.jsonl"], "a sink may be closed in the middle of a batch"
    sink.flush()


def test_dedup_syncs_data_before_the_floor_that_relies_on_them(tmp_path: Path, synced: list[str]) -> None:
    context = FakeContext()
    sink = dedup_jsonl(tmp_path)
    sink.open(context)
    for batch in range(1, 5):
        synced.clear()
        context.batch, context.item_id = batch, (0, batch, 0)
        sink.write(batch)
        sink.flush()
    assert read_floor(tmp_path / "part-00000.jsonl") > 0
    assert synced == [
        "part-00000.jsonl",
        "part-00000.floor.part",
        "part-00000.floor.part > part-00000.floor",
        tmp_path.name,
    ]
    synced.clear()
    sink.flush()
    assert synced == []
