"""Sources and sinks other than `paced` and the collector, on real Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.io import SourceClock, dedup_jsonl, jsonl
from penstock.testing.collector import Collector
from penstock.wire.ids import origin_of, stream_code
from tests.spark.items import Item, numbered

pytestmark = pytest.mark.spark


def read_lines(directory: Path) -> list[Any]:
    paths = sorted(directory.glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def write_files(directory: Path, kind: str) -> list[Any]:
    rows = [{"number": number} for number in range(500)]
    parts = [rows[:200], rows[200:201], rows[201:]]
    for index, part in enumerate(parts):
        path = directory / f"part-{index}.{kind}"
        if kind == "parquet":
            pa = pytest.importorskip("pyarrow")
            pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(part), path)
        elif kind == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in part))
        else:
            path.write_text("".join(f"{row['number']}\n" for row in part))
    return [str(row["number"]) for row in rows] if kind == "text" else rows


@pytest.mark.parametrize("kind", ["text", "jsonl", "parquet"])
def test_replay_reads_every_row_once(
    spark: SparkSession, collector: Collector, tmp_path: Path, kind: Any
) -> None:
    rows = write_files(tmp_path, kind)
    flow = ps.Flow("again")
    source = flow.source(ps.replay(str(tmp_path / f"*.{kind}"), format=kind, partitions=2), name="files")
    source.sink(collector, name="out")
    assert ps.run(flow).await_termination(60)
    assert sorted(collector.items(), key=str) == sorted(rows, key=str)


class Countdown:
    """A source of somebody else: two splits that count down from 300."""

    name = "countdown"
    splits = ("left", "right")

    def start(self, split: str) -> int:
        return 300

    def open(self, split: str, offset: int, clock: SourceClock) -> "CountdownReader":
        return CountdownReader(offset)


class CountdownReader:
    def __init__(self, offset: int) -> None:
        self.offset = offset

    def read(self, limit: int, wait_s: float) -> tuple[list[Any], None] | None:
        if self.offset == 0:
            return None
        items = list(range(self.offset, max(0, self.offset - min(limit, 7)), -1))
        self.offset -= len(items)
        return items, None

    def close(self) -> None:
        self.offset = -1


def test_source_of_somebody_else(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("own")
    flow.source(Countdown()).sink(collector, name="out")
    assert ps.run(flow).await_termination(60)
    assert sorted(collector.items()) == sorted([*range(1, 301)] * 2)


def test_jsonl_and_function_sinks(spark: SparkSession, tmp_path: Path) -> None:
    witness = tmp_path / "witness"

    def note(item: Item) -> None:
        with witness.open("a") as file:
            file.write(f"{item.index}\n")

    flow = ps.Flow("files")
    source = flow.source(numbered(300), name="numbers")
    source.sink(jsonl(tmp_path / "rows"), name="rows", parallelism=2)
    source.sink(note)
    assert ps.run(flow).await_termination(60)
    assert sorted(read_lines(tmp_path / "rows")) == [[0, index] for index in range(300)]
    assert [int(line) for line in witness.read_text().splitlines()] == list(range(300))


def test_ids_are_deterministic_and_tell_outputs_apart(spark: SparkSession, tmp_path: Path) -> None:
    def triple(item: Item) -> Iterator[tuple[int, int]]:
        for copy in range(3):
            yield item.index, copy

    def ids_of_a_run(place: Path, *, other_order: bool) -> list[Any]:
        flow = ps.Flow("ids", ids=True)
        if other_order:
            flow.source(numbered(10), name="others").sink(print, name="ignored")
        source = flow.source(numbered(200, partitions=2), name="numbers")
        if other_order:
            source.broadcast().sink(len, name="copies", parallelism=3)
        tripled = source.flat_map(lambda item: list(triple(item)), name="triple", parallelism=3)
        tripled.sink(dedup_jsonl(place), name="out", parallelism=2)
        assert ps.run(flow).await_termination(60)
        return sorted((tuple(row["id"]), tuple(row["item"])) for row in read_lines(place))

    first = ids_of_a_run(tmp_path / "first", other_order=False)
    assert first == ids_of_a_run(tmp_path / "second", other_order=True)
    assert len({row[0] for row in first}) == 600
    origin, hops = origin_of("numbers", "0/2"), [stream_code("numbers->triple"), stream_code("triple->out")]
    assert ((origin, 7, hops[0], hops[1] + 2), (7, 2)) in first


def test_handle_tells_how_it_goes(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("handle")
    flow.source(numbered(3000, rate=1000), name="numbers").sink(collector, name="out")
    job = ps.run(flow, sampling=1.0)
    assert job.status.state == "running"
    assert job.exception() is None
    assert not job.await_termination("10 ms")
    assert job.await_termination(60)
    over = job.status
    assert over.state == "stopped"
    last = job.last_progress
    assert last is not None
    assert last in job.recent_progress
    assert last["tasks"]["numbers"]["items_in"] > 0
    assert 0 < last["latency_ms"]["out"]["mean"] < 5000
    assert job.metrics().latency["out"].count == 3000
    job.stop()
