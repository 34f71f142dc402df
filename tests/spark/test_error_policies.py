"""What happens to items that a task cannot process, and to tasks that cannot be used at all."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import Item, numbered

pytestmark = pytest.mark.spark


def sevens_fail(item: Item) -> Item:
    if item.index % 7 == 0:
        raise ValueError(f"no {item.index}")
    return item


def flow_with(collector: Collector, on_error: Any, count: int = 70) -> ps.Flow:
    flow = ps.Flow("faulty")
    source = flow.source(numbered(count), name="numbers")
    source.map(sevens_fail, on_error=on_error).sink(collector, name="out")
    return flow


def test_skip_counts_and_goes_on(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(flow_with(collector, "skip"))
    assert job.await_termination(60)
    assert job.metrics().tasks["sevens_fail"].skipped == 10
    assert len(collector.items()) == 60


def test_dead_letter_keeps_item_and_traceback(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(flow_with(collector, "dead_letter"), dead_letters=tmp_path / "letters")
    assert job.await_termination(60)
    lines = (tmp_path / "letters" / "sevens_fail-0.jsonl").read_text().splitlines()
    letters = [json.loads(line) for line in lines]
    assert len(letters) == 10
    assert letters[1]["item"] == repr(Item(0, 7))
    assert letters[1]["error"] == "ValueError: no 7"
    assert "sevens_fail" in letters[1]["traceback"]
    assert len(collector.items()) == 60


def test_fail_stops_and_names_task_item_and_traceback(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(flow_with(collector, "fail"))
    with pytest.raises(ps.JobFailed) as caught:
        job.await_termination(60)
    text = str(caught.value)
    assert 'flow "faulty", task "sevens_fail"' in text
    assert "ValueError: no 0" in text
    assert "Item(partition=0, index=0)" in text
    assert "Traceback" in text
    assert job.status.state == "failed"
    assert job.exception() is caught.value


def test_error_in_open_names_the_hook(spark: SparkSession, collector: Collector) -> None:
    class Broken:
        def open(self, context: Any) -> None:
            raise RuntimeError("no database")

        def process(self, item: Any, out: Any) -> None:
            out(item)

    flow = ps.Flow("closed")
    flow.source(numbered(10), name="numbers").task(Broken).sink(collector, name="out")
    with pytest.raises(ps.JobFailed, match=r"(?s)open\(\) raised RuntimeError: no database"):
        ps.run(flow).await_termination(60)


def test_error_in_a_source_names_it(spark: SparkSession, collector: Collector) -> None:
    def broken_make(partition: int, index: int, seed: int) -> int:
        raise KeyError("nothing to make")

    flow = ps.Flow("dry")
    flow.source(ps.paced(broken_make, rate=10, count=5), name="numbers").sink(collector, name="out")
    with pytest.raises(ps.JobFailed, match=r'(?s)task "numbers".*nothing to make'):
        ps.run(flow).await_termination(60)


def locked(item: Item) -> Any:
    return threading.Lock() if item.index == 3 else item


def huge(item: Item) -> Any:
    return bytes(65 << 20) if item.index == 3 else item


@pytest.mark.parametrize(
    ("function", "problem"), [(locked, "pickle"), (huge, "65 MiB is larger than the 64 MiB")]
)
@pytest.mark.parametrize("lifetime", ["0 ms", "10 ms"])
def test_result_that_cannot_travel_is_an_error_of_its_item(
    spark: SparkSession, collector: Collector, tmp_path: Path, function: Any, problem: str, lifetime: str
) -> None:
    flow = ps.Flow("travel")
    source = flow.source(numbered(10), name="numbers")
    source.map(function, name="bad", on_error="dead_letter").batched(lifetime).sink(collector, name="out")
    job = ps.run(flow, dead_letters=tmp_path)
    assert job.await_termination(60)
    assert sorted(item.index for item in collector.items()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    letters = (tmp_path / "bad-0.jsonl").read_text().splitlines()
    assert len(letters) == 1
    assert problem in json.loads(letters[0])["error"]


def test_unpicklable_task_is_refused_before_anything_starts(collector: Collector) -> None:
    lock = threading.Lock()

    def uses_lock(item: Any) -> Any:
        with lock:
            return item

    flow = ps.Flow("stuck")
    flow.source(numbered(10), name="numbers").map(uses_lock).sink(collector, name="out")
    with pytest.raises(ps.FlowError, match='task "uses_lock"'):
        ps.run(flow)
