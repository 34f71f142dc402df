"""Replayed files: every record once, from any offset, in any number of partitions."""

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.io.protocol import SourceClock
from penstock.io.replay import Format, Replay, ReplayError, ReplayReader, replay

CLOCK = SourceClock(0, None)


def fill(directory: Path, files: list[list[int]], form: Format) -> Path:
    for number, values in enumerate(files):
        path = directory / f"file-{number:03d}"
        if form == "parquet":
            table = pyarrow.table({"n": pyarrow.array(values, pyarrow.int64())})
            pyarrow.parquet.write_table(table, path, row_group_size=3)
        else:
            path.write_text("".join(f"{json.dumps({'n': n})}\n" for n in values))
    return directory


def numbers(items: list[Any], form: Format) -> list[int]:
    return [(json.loads(item) if form == "text" else item)["n"] for item in items]


def opened(source: Replay[Any], partition: int, offset: Any = None) -> ReplayReader[Any]:
    split = source.splits[partition]
    return source.open(split, source.start(split) if offset is None else offset, CLOCK)


def drain(reader: ReplayReader[Any], limit: int) -> list[Any]:
    items: list[Any] = []
    while (got := reader.read(limit, 0.0)) is not None:
        assert 0 < len(got[0]) <= limit
        items += got[0]
    reader.close()
    return items


@given(
    files=st.lists(st.lists(st.integers(0, 1000), max_size=8), min_size=1, max_size=5),
    form=st.sampled_from(["text", "jsonl", "parquet"]),
    partitions=st.integers(1, 3),
    limit=st.integers(1, 7),
    data=st.data(),
)
def test_every_record_once_and_again_from_any_offset(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[int]],
    form: Format,
    partitions: int,
    limit: int,
    data: st.DataObject,
) -> None:
    source = replay(fill(tmp_path_factory.mktemp("replay"), files, form), form, partitions)
    for partition in range(partitions):
        expected = [n for values in files[partition::partitions] for n in values]
        assert numbers(drain(opened(source, partition), limit), form) == expected
        first = opened(source, partition)
        head: list[Any] = []
        for _ in range(data.draw(st.integers(0, 4))):
            head += (first.read(limit, 0.0) or ([], None))[0]
        offset = json.loads(json.dumps(first.offset))
        first.close()
        tail = drain(opened(source, partition, offset), limit)
        assert numbers(head + tail, form) == expected


def test_loop_begins_again_and_counts_the_rounds(tmp_path: Path) -> None:
    source = replay(fill(tmp_path, [[1, 2], [3]], "jsonl"), "jsonl", loop=True)
    reader = opened(source, 0)
    got = reader.read(8, 0.0)
    assert got is not None
    assert numbers(got[0], "jsonl") == [1, 2, 3, 1, 2, 3, 1, 2]
    assert reader.offset["round"] == 2
    reader.close()


def test_a_loop_over_empty_files_ends(tmp_path: Path) -> None:
    source = replay(fill(tmp_path, [[], []], "text"), loop=True)
    assert opened(source, 0).read(8, 0.0) is None


def test_a_partition_without_files_is_exhausted(tmp_path: Path) -> None:
    source = replay(fill(tmp_path, [[1]], "text"), partitions=2)
    assert opened(source, 1).read(8, 0.0) is None


def test_the_splits_of_other_numbers_of_partitions_have_other_names(tmp_path: Path) -> None:
    fill(tmp_path, [[1], [2], [3]], "text")
    assert replay(tmp_path, partitions=2).splits == ("0/2", "1/2")
    assert replay(tmp_path).splits == ("0/1",)


def test_last_line_without_an_end_and_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\r\ntwo")
    (tmp_path / "b.log").write_text("three\n")
    assert drain(opened(replay(str(tmp_path / "*.txt")), 0), 10) == ["one", "two"]


def test_changed_files_are_refused(tmp_path: Path) -> None:
    source = replay(fill(tmp_path, [[1], [2]], "text"))
    offset = {**source.start(source.splits[0]), "name": "/gone/file-000"}
    with pytest.raises(ReplayError, match=r"was reading '/gone/file-000' as file 0 of this partition"):
        opened(source, 0, offset)


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReplayError, match="no file to replay: nothing matches"):
        replay(tmp_path / "nothing*")
    with pytest.raises(ReplayError, match="replay knows the formats text, jsonl, parquet, not 'xml'"):
        replay(tmp_path, "xml")  # type: ignore[call-overload]
    with pytest.raises(ReplayError, match="at least 1 partition, not 0"):
        replay(tmp_path, partitions=0)
    (tmp_path / "bad").write_text('{"n": 1}\nnonsense\n')
    reader = opened(replay(tmp_path, "jsonl"), 0)
    assert reader.read(10, 0.0) == ([{"n": 1}], None), "what came before the error is not lost"
    for _ in range(2):
        with pytest.raises(ReplayError, match=r"bad, byte 9: not a JSON document"):
            reader.read(10, 0.0)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ReplayError, match=r"needs pyarrow: install penstock\[arrow\]"):
        replay(tmp_path, "parquet")
