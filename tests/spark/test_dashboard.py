"""The dashboard of a flow that really runs: its figures come, and steering it changes it and is logged."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.control.recording import read_log, read_snapshots
from penstock.spark.session import all_slots
from tests.spark.items import Item, make_item


def same(item: Item) -> Item:
    return item


def drop(item: Item) -> None:
    """The end."""


def flow() -> ps.Flow:
    made = ps.Flow("watched")
    numbers = made.source(ps.paced(make_item, 400), name="numbers")
    numbers.map(same, name="work", parallelism=ps.elastic(1, 4, initial=2)).sink(drop, name="drop")
    made.constrain("50 ms", ["numbers->work", "work", "work->drop"], name="fast")
    return made


def asked(url: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """With the token, as a program has it."""
    base, _, token = url.partition("?token=")
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(base + path, data, headers), timeout=30) as answer:
        return json.load(answer)


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.mark.spark
def test_a_running_flow_is_seen_and_steered(spark: SparkSession, tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    job = ps.run(
        flow(), sampling=0.5, policy="static", interval="1 s", recording=recording, dashboard="127.0.0.1:0"
    )
    try:
        url = job.dashboard_url
        assert url is not None

        def rates() -> list[float]:
            told = asked(url, "api/columns")
            column = told["values"][told["keys"].index(["task", "work", "rate"])] if told["keys"] else []
            return [value for value in column if value]

        until(lambda: any(100 < value < 1600 for value in rates()))
        about = asked(url, "api/flow")
        assert (about["flow"], about["policy"], about["may_steer"]) == ("watched", "static", True)
        wanted = {"do": "set", "replicas": {"work": 3}, "bounds_ms": {"fast": 70}, "policy": "off"}
        changed = asked(url, "api/set", wanted)
        assert changed["changes"] == [
            "work: 2 -> 3 replicas",
            "fast: bound 50 ms -> 70 ms",
            "policy: on -> off",
        ]
        assert job.metrics().tasks["work"].active == 3
        held = sum(task.pool for task in job.metrics().tasks.values())
        assert job.control is not None
        seen = len(job.decisions())
        until(lambda: len(job.decisions()) > seen + 1)
        assert job.decisions()[-1].decision.reasons[0].why == "no action: the policy is off"
        assert job.metrics().tasks["work"].active == 3, "nobody undoes it"
        by_hand = next(one for one in asked(url, "api/decisions?count=500") if one["by"] == "dashboard")
        assert [change["text"] for change in by_hand["changes"]] == changed["changes"]
    finally:
        job.stop()
    assert [entry.decision.reasons[0].why for entry in read_log(recording) if entry.by == "dashboard"] == [
        "work: 2 -> 3 replicas"
    ]
    snapshots = list(read_snapshots(recording))
    told = [used for seen in snapshots for used in (seen.executors or {}).values()]
    assert any(executor.cores_used for executor in told), "workers have used their executor's cores"
    assert any(executor.java_cores_used for executor in told), "so has Java"
    assert any((executor.memory_bytes or 0) > 100 * 2**20 for executor in told)
    slots = [
        (sum(one.slots or 0 for one in found.values()), sum(one.slots_used or 0 for one in found.values()))
        for seen in snapshots
        if (found := seen.executors or {})
    ]
    assert (all_slots(spark), held) in slots
    with pytest.raises(urllib.error.URLError):
        asked(url, "api/flow")


def test_what_cannot_be_served_is_refused_before_anything_starts() -> None:
    with pytest.raises(ps.FlowError, match="is no address for the dashboard"):
        ps.run(flow(), dashboard="nowhere")
