"""The ablation of pools: at every change the flow is stopped and started again, and nothing is lost."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

import penstock
from penstock.control.control_plan import ControlPlan
from penstock.control.loop import Controller
from penstock.evaluation.restarting import RestartingEngine, with_counts_of
from penstock.stats.snapshot import Snapshot
from penstock.testing.collector import Collector
from tests.report.recordings import decision, snapshot
from tests.spark.items import Item, assert_exactly_once, numbered


@dataclass
class FakeJob:
    """Runs for ever; remembers what it was told."""

    active: dict[str, int] = field(default_factory=dict)
    stopped: bool = False

    def await_end(self, timeout_s: float | None) -> bool:
        return False

    def snapshot(self, interval_s: float) -> Snapshot:
        return snapshot(arrived=30.0 if self.stopped else 500.0, replicas=self.active.get("work", 2))

    def stop(self) -> None:
        self.stopped = True

    def set_active(self, task: str, replicas: int) -> None:
        self.active[task] = replicas


def test_only_a_change_of_replicas_restarts_the_flow() -> None:
    jobs: list[FakeJob] = []

    def start() -> FakeJob:
        jobs.append(FakeJob())
        return jobs[-1]

    engine = RestartingEngine(start, 1.0)
    engine.observe()
    assert engine.apply(decision(replicas=2)) is None
    effect = engine.apply(decision(replicas=5))
    assert effect is not None
    assert effect.gap_ms is not None
    boundary = engine.boundary()
    assert boundary is not None
    assert boundary.gap_ms == effect.gap_ms
    assert [job.stopped for job in jobs] == [True, False]
    assert jobs[1].active == {"work": 5}
    assert engine.restarts == 1


def test_what_is_drained_while_stopping_is_counted_once() -> None:
    engine = RestartingEngine(FakeJob, 1.0)
    engine.observe()
    engine.apply(decision(replicas=3))
    counts = [seen.tasks["sink"].processed_total for _ in range(2) if (seen := engine.observe()) is not None]
    assert counts == [530.0, 500.0]


def test_unknown_counts_stay_unknown() -> None:
    bare = snapshot()
    assert with_counts_of(bare, bare).tasks["source"].processed_total is None


def test_what_was_sent_while_it_was_stopped_counts_too() -> None:
    def sent(count: float | None) -> Snapshot:
        one = snapshot()
        return replace(one, streams=[replace(one.streams[0], emitted_total=count), *one.streams[1:]])

    assert with_counts_of(sent(30.0), sent(500.0)).streams[0].emitted_total == 530.0
    assert with_counts_of(sent(None), sent(500.0)).streams[0].emitted_total == 500.0


def slow(item: Item) -> Item:
    time.sleep(0.004)
    return item


@pytest.mark.spark
def test_restarts_lose_nothing_on_spark(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "items")
    flow = penstock.Flow("restarted")
    items = flow.source(numbered(1200, rate=300), name="numbers")
    items.map(slow, parallelism=penstock.elastic(1, 4, pool=4)).sink(collector, name="out")

    def start() -> penstock.Job:
        return penstock.run(flow, checkpoint=tmp_path / "checkpoint", sampling=1.0)

    engine = RestartingEngine(start, 1.0)
    policy = ControlPlan("ds2", settings=("guards.warm_up_s=0",)).create_policy()
    cycles = list(Controller(engine, policy, time.time, monotonic=time.monotonic).cycles())
    assert engine.restarts >= 1
    assert max(cycle.snapshot.tasks["slow"].parallelism for cycle in cycles) >= 2
    assert_exactly_once(collector.items(), 1200)
