"""Workers that die: what they held is processed again by successors, and an item that kills is put aside."""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.io import paced
from penstock.testing.collector import Collector
from tests.spark.items import Item, expected, make_item, numbered

pytestmark = pytest.mark.spark


DIES_AT = 2500
"""Late: what is sent while executors still connect comes at once, and is not acknowledged one by one."""


class DiesOnce:
    """Kills its process at one item, the first time it sees it."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def process(self, item: Item, out: Any) -> None:
        if item.index == DIES_AT and not self.witness.exists():
            self.witness.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        out(item)


@pytest.mark.parametrize("lifetime", ["0 ms", "30 ms"])
def test_crash_loses_nothing(
    spark: SparkSession, collector: Collector, tmp_path: Path, lifetime: str
) -> None:
    flow = ps.Flow("phoenix")
    source = flow.source(numbered(3000), name="numbers")
    source.task(DiesOnce(tmp_path / "died"), name="dies").batched(lifetime).sink(collector, name="out")
    job = ps.run(flow)
    assert job.await_termination(60)
    seen = Counter(collector.items())
    assert seen.keys() == expected(3000)
    doubled = sorted(item.index for item, times in seen.items() if times > 1)
    assert all(times <= 2 for times in seen.values())
    assert not doubled or (doubled[0] > DIES_AT - 300 and doubled[-1] <= DIES_AT)
    assert job.metrics().tasks["dies"].restarts == 1


def killer(item: Item) -> Item:
    if item.index in (40, 41):
        os.kill(os.getpid(), signal.SIGSEGV)
    return item


def test_killing_item_goes_the_way_of_on_error(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("poison")
    source = flow.source(numbered(200), name="numbers")
    source.batched("5 ms").map(killer, on_error="dead_letter").sink(collector, name="out")
    job = ps.run(flow, dead_letters=tmp_path)
    assert job.await_termination(60)
    seen = Counter(collector.items())
    assert {item.index for item in seen} == set(range(200)) - {40, 41}
    letters = (tmp_path / "killer-0.jsonl").read_text().splitlines()
    assert len({line for line in letters if "killed its worker process three times" in line}) == 2


def test_killing_item_fails_the_flow_by_default(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("fatal")
    flow.source(numbered(200), name="numbers").map(killer).sink(collector, name="out")
    with pytest.raises(ps.JobFailed, match=r'(?s)task "killer".*three times.*index=40'):
        ps.run(flow).await_termination(60)


def test_worker_that_cannot_start_fails_the_flow(spark: SparkSession, collector: Collector) -> None:
    class Dead:
        def open(self, context: Any) -> None:
            os._exit(3)

        def process(self, item: Any, out: Any) -> None:
            out(item)

    flow = ps.Flow("stillborn")
    flow.source(numbered(50), name="numbers").task(Dead).sink(collector, name="out")
    with pytest.raises(ps.JobFailed, match=r"died 3 times in a row \(exit status 3\)"):
        ps.run(flow).await_termination(60)


def test_killed_source_worker_goes_on_at_its_mark(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("spring")
    source = flow.source(paced(make_item, rate=1000, count=4000), name="numbers")
    source.batched("20 ms").sink(collector, name="out")
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 1500)
    os.kill(job.metrics().tasks["numbers"].processes[0], signal.SIGKILL)
    assert job.await_termination(60)
    seen = Counter(collector.items())
    assert seen.keys() == expected(4000)
    assert sum(seen.values()) - 4000 < 1000
    assert job.metrics().tasks["numbers"].restarts == 1


def test_killed_parent_of_the_workers_is_replaced(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("orphans")
    source = flow.source(paced(make_item, rate=500, count=2500), name="numbers")
    source.map(same, parallelism=ps.elastic(1, 4)).sink(collector, name="out")
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 300 and job.metrics().tasks["same"].processes)
    worker = job.metrics().tasks["same"].processes[0]
    parent = int(Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(parent, signal.SIGKILL)
    job.set_active("same", 3)
    assert job.await_termination(60)
    assert Counter(collector.items()).keys() == expected(2500)


def same(item: Any) -> Any:
    return item


def wait_for(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
