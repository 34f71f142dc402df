"""Files that sinks prepare where only Hadoop reaches the checkpoint: put away there, and fetched."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.epochs.boundary import Place
from penstock.epochs.entries import Entry, Handle
from penstock.epochs.errors import LogError
from penstock.epochs.output import Sinks
from penstock.epochs.prepared import Fetched, put_away
from penstock.testing.storage import MemoryStorage


class Sent:
    """Notes what a file had when it was committed, and removes the file."""

    def __init__(self) -> None:
        self.files: list[tuple[str, bytes, float]] = []

    def write(self, item: Any) -> None: ...

    def prepare(self, epoch: int) -> str | None: ...

    def committer(self, context: Any) -> "Sent":
        self.place = context.prepared_in
        return self

    def commit(self, attempt: int, epoch: int, descriptions: Sequence[str]) -> None:
        for name in descriptions:
            file = self.place / name
            self.files.append((name, file.read_bytes(), file.stat().st_mtime))
            file.unlink()

    def close(self) -> None: ...


def test_what_is_finished_is_put_away_and_fetched_as_it_was(tmp_path: Path) -> None:
    storage = MemoryStorage()
    for name, content in (("one", b"1"), ("two", b"22"), (".new-three", b"")):
        (tmp_path / name).write_bytes(content)
    os.utime(tmp_path / "one", (1_000.0, 1_000.0))
    put_away(tmp_path, storage)
    assert [file.name for file in tmp_path.iterdir()] == [".new-three"]
    assert storage.names("prepared") == ["prepared/one", "prepared/two"]
    sink = Sent()
    sinks = Sinks({"out": sink})
    fetched = Fetched(storage)
    sinks.begin("checkpoint-00000001", fetched)
    handle = Handle(task="out", replica=0, attempt=1, epoch=3, content="one")
    sinks.commit(Entry(kind="commit", attempt=1, epoch=3, handles=(handle,)))
    assert sink.files == [("one", b"1", 1_000.0)]
    assert storage.names("prepared") == ["prepared/two"], (
        "what the sink removed is gone, the other is for later"
    )
    sinks.close()
    assert not fetched.directory.exists()


def test_nobody_writes_over_what_is_there(tmp_path: Path) -> None:
    storage = MemoryStorage()
    storage.create("prepared/one", b"another's")
    (tmp_path / "one").write_bytes(b"1")
    with pytest.raises(LogError, match="prepared/one is there already"):
        put_away(tmp_path, storage)


def test_a_replica_has_a_directory_of_its_own_beside_its_executor() -> None:
    far = Place("hdfs://there/epochs", 1, (), {}, marks=True, is_remote=True, beside="/tmp/executor")
    assert far.prepared_in is None, "the driver has another one"
    assert far.prepared_by("out", 1) == Path("/tmp/executor/prepared/out-1")
    near = Place("/data/epochs", 1, (), {}, marks=True)
    assert near.prepared_by("out", 1) == near.prepared_in == Path("/data/epochs/prepared")
    assert Place("/data/epochs", 1, (), {}).prepared_by("out", 1) is None
