"""The JSON-lines sink."""

import errno
import json
import os
from pathlib import Path

import pytest

from penstock.io.jsonl import jsonl
from penstock.io.part_file import PartFile
from tests.io.sink_context import FakeContext


def lines(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_file_per_replica_appended_to(tmp_path: Path) -> None:
    for replica, items in ((0, [1, {"a": "ä"}]), (1, [None]), (0, ["again"])):
        sink = jsonl(tmp_path / "out")
        sink.open(FakeContext(replica=replica))
        for item in items:
            sink.write(item)
        sink.close()
    assert lines(tmp_path / "out" / "part-00000.jsonl") == [1, {"a": "ä"}, "again"]
    assert lines(tmp_path / "out" / "part-00001.jsonl") == [None]


def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "part-00000.jsonl"
    path.write_bytes(b'1\n2\n{"a": "' + b"x" * 200_000)
    sink = jsonl(tmp_path)
    sink.open(FakeContext())
    sink.write(3)
    sink.close()
    assert lines(path) == [1, 2, 3]


def test_items_are_there_before_the_sink_is_closed(tmp_path: Path) -> None:
    sink = jsonl(tmp_path)
    sink.open(FakeContext())
    sink.write("safe")
    assert lines(tmp_path / "part-00000.jsonl") == ["safe"]
    sink.close()
    sink.close()


def test_a_write_cut_short_is_undone_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartFile.append_to(tmp_path / "part")
    part.write_line(b"whole")
    real = os.write
    room = [3, 0]

    def nearly_full(descriptor: int, data: bytes) -> int:
        if not (fits := room.pop(0)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:fits])

    monkeypatch.setattr("os.write", nearly_full)
    with pytest.raises(OSError, match=r"No space left on device: .*part"):
        part.write_line(b"torn")
    part.close()
    assert (tmp_path / "part").read_bytes() == b"whole\n"
