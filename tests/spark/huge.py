"""Items almost as large as may be, and what the shuffle shows of them while they wait and pass."""

import time
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.spark.job import Job
from penstock.testing.collector import Collector
from tests.spark.items import Item, numbered

COUNT = 6
HUGE_BYTES = 63 << 20
WAITS_WITHIN_S = 60


def inflated(item: Item) -> tuple[Item, bytes]:
    return item, bytes(HUGE_BYTES)


class Weighed:
    """Lets no item pass before a file is there."""

    def __init__(self, gate: Path) -> None:
        self.gate = gate

    def process(self, pair: tuple[Item, bytes], out: Any) -> None:
        while not self.gate.exists():
            time.sleep(0.01)
        out((pair[0], len(pair[1])))


def huge_flow(collector: Collector, gate: Path) -> ps.Flow:
    """Two replicas make such items, and two hold them."""
    flow = ps.Flow("huge")
    source = flow.source(numbered(COUNT, rate=1000), name="numbers")
    made = source.map(inflated, parallelism=2)
    made.task(Weighed(gate), name="weighed", parallelism=2).sink(collector, name="out")
    return flow


def shown(job: Job, gate: Path) -> list[tuple[int, int]]:
    """What all executors held, and might hold: until an item waits, and then until all are through."""
    found: list[tuple[int, int]] = []
    job.set_measure_every("0.5 s")
    deadline = time.monotonic() + WAITS_WITHIN_S
    while not job.await_termination(0.02):
        found += [(held.bytes, held.limit_bytes) for held in job.metrics().shuffle.values()]
        if time.monotonic() > deadline or any(held > HUGE_BYTES for held, _ in found):
            gate.touch()
    return found
