"""Sources and sinks in a real run."""

import json
from pathlib import Path

import pytest

import penstock
from penstock.io import dedup_jsonl, jsonl, paced, replay, steps
from penstock.testing import Collector
from penstock.wire.ids import origin_of

pytestmark = pytest.mark.spark


def finish(flow: penstock.Flow, checkpoint: Path | None = None) -> None:
    assert penstock.run(flow, checkpoint=checkpoint).await_termination(120)


def test_replayed_files_arrive_once_each(tmp_path: Path) -> None:
    for number in range(3):
        lines = [json.dumps({"file": number, "line": line}) + "\n" for line in range(200)]
        (tmp_path / f"in-{number}.jsonl").write_text("".join(lines))
    with Collector() as collector:
        flow = penstock.Flow("replayed")
        documents = flow.source(replay(tmp_path / "in-*.jsonl", "jsonl", partitions=2), name="documents")
        documents.sink(collector, name="collected", parallelism=2)
        finish(flow)
        arrived = sorted((item["file"], item["line"]) for item in collector.items())
    assert arrived == [(number, line) for number in range(3) for line in range(200)]


def test_a_schedule_ends_and_files_hold_everything_in_order(tmp_path: Path) -> None:
    flow = penstock.Flow("paced")
    numbers = flow.source(
        paced(lambda partition, index, seed: index, steps([(0.5, 400), (0.5, 1000)])), name="numbers"
    )
    numbers.sink(jsonl(tmp_path / "out"), name="out")
    finish(flow)
    lines = (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(range(700))


def test_a_finished_flow_started_again_on_its_checkpoint_adds_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        flow = penstock.Flow("again", ids=True)
        numbers = flow.source(
            paced(lambda partition, index, seed: index, 2000, partitions=2, count=1000), name="numbers"
        )
        numbers.sink(dedup_jsonl(tmp_path / "out"), name="out", parallelism=2)
        finish(flow, tmp_path / "checkpoint")
    parts = [part.read_text().splitlines() for part in sorted((tmp_path / "out").glob("part-*.jsonl"))]
    ids = [tuple(json.loads(line)["id"][:2]) for part in parts for line in part]
    origins = [origin_of("numbers", split) for split in ("0/2", "1/2")]
    assert sorted(ids) == sorted((origin, index) for origin in origins for index in range(500))
