"""Tasks with a limit of memory or time: what exceeds it costs its own worker, and nothing is lost."""

import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import Item, expected, numbered
from tests.spark.test_crashes import same

pytestmark = pytest.mark.spark

HELD: list[bytearray] = []


def letters_of(place: Path, task: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / f"{task}-0.jsonl").read_text().splitlines()]


def leaks(item: Item) -> Item:
    """A megabyte for each item, which nobody ever gives back."""
    HELD.append(bytearray(b"x") * 1_000_000)
    return item


def test_a_task_that_leaks_loses_its_worker_and_no_item(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("leaking")
    source = flow.source(numbered(300, rate=300), name="numbers")
    source.batched("20 ms").map(leaks, memory="60 MB").batched("20 ms").sink(collector, name="out")
    job = ps.run(flow)
    assert job.await_termination(90)
    assert Counter(collector.items()).keys() == expected(300)
    assert 3 <= job.metrics().tasks["leaks"].restarts <= 12


def eats(item: Item) -> Item:
    """One item takes more than there is, bit by bit, each time; another asks for all of it at once."""
    if item.index == 40:
        hoard = []
        while True:
            hoard.append(bytearray(b"x") * 4_000_000)
            time.sleep(0.002)
    if item.index == 60:
        bytearray(10**12)
    return item


def test_an_item_that_eats_memory_goes_the_way_of_on_error(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("eating")
    source = flow.source(numbered(200), name="numbers")
    source.batched("5 ms").map(eats, memory="80 MB", on_error="dead_letter").sink(collector, name="out")
    job = ps.run(flow, dead_letters=tmp_path)
    assert job.await_termination(90)
    assert {item.index for item in collector.items()} == set(range(200)) - {40, 60}
    first, second = letters_of(tmp_path, "eats")
    assert first["item"] == repr(Item(0, 40))
    assert re.fullmatch(
        r"this item has killed its worker process three times: its worker used \d+ MB,"
        r" more than its memory=80 MB",
        first["error"],
    )
    assert second["error"] == "MemoryError, far more than its memory=80 MB"
    assert job.metrics().tasks["eats"].restarts == 3


def hangs(item: Item) -> Item:
    """In code that holds the interpreter, so that no other thread of the process runs, or that lets it go."""
    if item.index == 40:
        re.match(r"(a+)+$", "a" * 64 + "b")
    if item.index == 60:
        time.sleep(600)
    return item


@pytest.mark.parametrize("lifetime", ["0 ms", "20 ms"])
def test_an_item_that_hangs_is_put_aside_at_once(
    spark: SparkSession, collector: Collector, tmp_path: Path, lifetime: str
) -> None:
    flow = ps.Flow("hanging")
    source = flow.source(numbered(300, rate=300), name="numbers").batched(lifetime)
    hanging = source.map(hangs, timeout="500 ms", on_error="dead_letter").batched(lifetime)
    hanging.sink(collector, name="out")
    beside = Collector()
    source.map(same).sink(beside, name="beside")
    job = ps.run(flow, dead_letters=tmp_path)
    assert job.await_termination(90)
    assert {item.index for item in collector.items()} == set(range(300)) - {40, 60}
    assert Counter(beside.items()).keys() == expected(300)
    beside.close()
    letters = letters_of(tmp_path, "hangs")
    assert [letter["item"] for letter in letters] == [repr(Item(0, 40)), repr(Item(0, 60))]
    assert {letter["error"] for letter in letters} == {"it took longer than its timeout=500 ms"}
    assert job.metrics().tasks["hangs"].restarts == 2


def test_an_item_that_hangs_fails_the_flow_by_default(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("stuck")
    flow.source(numbered(200), name="numbers").map(hangs, timeout="0.3 s").sink(collector, name="out")
    with pytest.raises(ps.JobFailed) as caught:
        ps.run(flow).await_termination(60)
    assert str(caught.value).startswith(
        'flow "stuck", task "hangs", replica 0: it took longer than its timeout=300 ms\n'
        "item: Item(partition=0, index=40)"
    )


def test_in_a_chain_the_task_that_hangs_decides(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("chained")
    head = flow.source(numbered(600, rate=300), name="numbers").map(same, name="head", timeout="5 s")
    head.forward().map(hangs_late, timeout="300 ms", on_error="skip").sink(collector, name="out")
    job = ps.run(flow)
    job.set_chains([["head", "hangs_late"]])
    assert job.await_termination(90)
    assert {item.index for item in collector.items()} == set(range(600)) - {400}
    metrics = job.metrics().tasks
    assert (metrics["head"].restarts, metrics["head"].skipped) == (1, 1)


def hangs_late(item: Item) -> Item:
    if item.index == 400:
        time.sleep(600)
    return item


def slow_sink(item: bytes) -> None:
    time.sleep(0.02)


def large(item: Item) -> bytes:
    return bytes(200_000)


def test_waiting_for_room_in_the_output_is_no_hang(spark: SparkSession) -> None:
    flow = ps.Flow("jammed")
    source = flow.source(numbered(200, rate=5000), name="numbers")
    source.map(large, timeout="100 ms").sink(slow_sink, name="out")
    job = ps.run(flow)
    assert job.await_termination(90)
    metrics = job.metrics().tasks
    assert (metrics["large"].restarts, metrics["out"].items_in) == (0, 200)


class StartsChildren:
    """Forks a process for each tenth item, and never waits for it."""

    def __init__(self, note: Path) -> None:
        self.note = note

    def process(self, item: Item, out: Any) -> None:
        if item.index % 10 == 0:
            child = os.fork()
            if child == 0:
                time.sleep(120)
                os._exit(0)
            with self.note.open("a") as note:
                note.write(f"{child}\n")
        if item.index == 55:
            time.sleep(600)
        out(item)


def test_what_a_task_forked_ends_with_a_worker_that_hangs(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("parents")
    source = flow.source(numbered(100, rate=500), name="numbers")
    body = StartsChildren(tmp_path / "children")
    source.task(body, name="forks", timeout="300 ms", on_error="skip").sink(collector, name="out")
    job = ps.run(flow)
    assert job.await_termination(90)
    assert {item.index for item in collector.items()} == set(range(100)) - {55}
    children = [int(line) for line in (tmp_path / "children").read_text().split()]
    assert len(children) >= 10
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "a forked process is left"
        time.sleep(0.05)


def test_a_module_that_starts_a_thread_when_it_is_imported(
    spark: SparkSession, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread stays in the parent of the workers; they are forked beside it, killed and replaced."""
    (tmp_path / "busy_module.py").write_text(
        "import threading, time\n"
        "def tick():\n"
        "    while True:\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=tick, daemon=True).start()\n"
        "def passes(item):\n"
        "    if item.index == 30:\n"
        "        time.sleep(600)\n"
        "    return item\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import busy_module  # type: ignore[import-not-found]

    flow = ps.Flow("threaded")
    source = flow.source(numbered(200, rate=500), name="numbers")
    limited = source.map(busy_module.passes, timeout="300 ms", on_error="skip", parallelism=2)
    limited.sink(collector, name="out")
    job = ps.run(flow)
    assert job.await_termination(90)
    assert {item.index for item in collector.items()} == set(range(200)) - {30}
