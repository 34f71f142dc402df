"""A worker killed in every state of its life, while data flow: nothing is lost, whatever it was doing."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import Item, expected, numbered
from tests.spark.test_crashes import same, wait_for

pytestmark = pytest.mark.spark

COUNT = 3000
Hook = Literal["open", "process", "flush", "close"]


class DiesIn:
    """Kills its process the first time that one of its hooks is called."""

    def __init__(self, hook: Hook, witness: Path, pause_s: float = 0.0) -> None:
        self.hook = hook
        self.witness = witness
        self.pause_s = pause_s

    def die(self, hook: Hook) -> None:
        if hook == self.hook and not self.witness.exists():
            self.witness.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def open(self, context: Any) -> None:
        self.die("open")

    def process(self, item: Item, out: Any) -> None:
        time.sleep(self.pause_s)
        self.die("process")
        out(item)

    def flush(self) -> None:
        self.die("flush")

    def close(self) -> None:
        self.die("close")


def finished(job: ps.Job, collector: Collector, restarts: dict[str, int]) -> None:
    """The flow ends well, every item has arrived, and so many workers were replaced."""
    assert job.await_termination(90)
    assert Counter(collector.items()).keys() == expected(COUNT)
    tasks = job.metrics().tasks
    assert {name: tasks[name].restarts for name in restarts} == restarts


@pytest.mark.parametrize("hook", ["open", "process", "flush"])
@pytest.mark.parametrize("lifetime", ["0 ms", "20 ms"])
def test_killed_while_starting_running_or_ending(
    spark: SparkSession, collector: Collector, tmp_path: Path, hook: Hook, lifetime: str
) -> None:
    flow = ps.Flow("mortal")
    source = flow.source(numbered(COUNT, rate=2000), name="numbers").batched(lifetime)
    source.task(DiesIn(hook, tmp_path / "died"), name="dies").batched(lifetime).sink(collector, name="out")
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 300)
    job.boundary()
    finished(job, collector, {"dies": 1})


def test_killed_with_a_backlog_in_a_later_batch(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    """What was acknowledged in the batch before must not count for this one, which has fewer envelopes."""
    flow = ps.Flow("later")
    source = flow.source(numbered(COUNT, rate=600), name="numbers")
    source.task(Slow(tmp_path / "at work"), name="slow").sink(collector, name="out")
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 1200)
    job.boundary()  # the batch before works off its backlog first
    before = len(collector.items())
    wait_for(lambda: len(collector.items()) > before + 50)
    os.kill(int((tmp_path / "at work").read_text()), signal.SIGKILL)
    finished(job, collector, {"slow": 1})


class Slow:
    """Takes 2 ms for an item, and says which process is at work.

    Its replica may go to another executor with a batch, and the worker it had before lives for some seconds.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.known = False

    def process(self, item: Item, out: Any) -> None:
        if not self.known:
            self.place.write_text(str(os.getpid()))
            self.known = True
        time.sleep(0.002)
        out(item)


def test_killed_while_it_closes_because_it_is_no_longer_active(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("retiring")
    source = flow.source(numbered(COUNT, rate=700), name="numbers")
    dies = DiesIn("close", tmp_path / "died")
    source.task(dies, name="dies", parallelism=ps.elastic(1, 2, initial=2)).sink(collector, name="out")
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 300)
    job.set_active("dies", 1)
    wait_for((tmp_path / "died").exists)
    job.set_active("dies", 2)
    finished(job, collector, {"dies": 1})


def chained(collector: Collector, follower: Any) -> ps.Flow:
    """A row of two, the second of which has a backlog when they are chained."""
    flow = ps.Flow("chaining")
    head = flow.source(numbered(COUNT, rate=2000), name="numbers").batched("5 ms").map(same, name="head")
    behind = head.batched("5 ms").forward().task(follower, name="follower")
    behind.sink(collector, name="out")
    return flow


@pytest.mark.parametrize("killed", ["head", "follower"])
def test_killed_while_tasks_are_being_chained(
    spark: SparkSession, collector: Collector, tmp_path: Path, killed: str
) -> None:
    """The follower first works off what it was given: for about a second it retires, and the head waits."""
    job = ps.run(chained(collector, DiesIn("open", tmp_path, pause_s=0.001)))
    wait_for(lambda: len(collector.items()) > 300)
    process = job.metrics().tasks[killed].processes[0]
    backlog = job.metrics().tasks["head"].items_out - job.metrics().tasks["follower"].items_in
    job.set_chains([["head", "follower"]])
    job.await_effect(5)
    time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    finished(job, collector, {killed: 1})
    assert backlog >= 0


@pytest.mark.parametrize("hook", ["flush", "close"])
def test_killed_by_its_last_words_before_it_is_chained(
    spark: SparkSession, collector: Collector, tmp_path: Path, hook: Hook
) -> None:
    job = ps.run(chained(collector, DiesIn(hook, tmp_path / "died")))
    wait_for(lambda: len(collector.items()) > 300)
    job.set_chains([["head", "follower"]])
    wait_for((tmp_path / "died").exists)
    finished(job, collector, {"follower": 1})


class Parent:
    """Forks a process that outlives it and holds whatever it held."""

    def __init__(self, note: Path) -> None:
        self.note = note

    def open(self, context: Any) -> None:
        child = os.fork()
        if child == 0:
            time.sleep(120)
            os._exit(0)
        with self.note.open("a") as note:
            note.write(f"{child}\n")

    def process(self, item: Item, out: Any) -> None:
        out(item)


def test_killed_though_a_process_it_forked_still_holds_its_channels(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("parents")
    source = flow.source(numbered(COUNT, rate=1000), name="numbers")
    source.task(Parent(tmp_path / "children"), name="parent").sink(collector, name="out")
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 300 and job.metrics().tasks["parent"].processes)
    os.kill(job.metrics().tasks["parent"].processes[0], signal.SIGKILL)
    finished(job, collector, {"parent": 1})
    children = [int(line) for line in (tmp_path / "children").read_text().split()]
    assert len(children) == 2
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def test_a_worker_with_much_to_do_again_does_not_stand_still(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    """What its successor is given again is more than a socket holds, and so is what it says meanwhile."""

    def large(item: Item) -> tuple[Item, bytes]:
        return item, bytes(20_000)

    class Repeats:
        """Holds back its acknowledgements (nothing is shipped for a second), then dies once."""

        def process(self, item: tuple[Item, bytes], out: Any) -> None:
            if item[0].index == 200 and not (tmp_path / "died").exists():
                (tmp_path / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            out(item)

    flow = ps.Flow("heavy")
    source = flow.source(numbered(400, rate=2000), name="numbers").map(large)
    source.task(Repeats, name="repeats").batched("1 s").map(first, name="first").sink(collector, name="out")
    job = ps.run(flow)
    assert job.await_termination(60)
    assert Counter(collector.items()).keys() == expected(400)


def first(item: tuple[Any, Any]) -> Any:
    return item[0]


def test_deaths_far_apart_are_no_reason_to_give_up(spark: SparkSession, collector: Collector) -> None:
    """A source gets nothing that it could acknowledge: what it has shipped shows that it gets on."""
    flow = ps.Flow("stubborn")
    flow.source(numbered(COUNT, rate=600), name="numbers").sink(collector, name="out")
    job = ps.run(flow)
    for death in range(4):
        wait_for(lambda death=death: len(collector.items()) > 200 * (death + 1))
        wait_for(_process_of(job, "numbers", death))
        os.kill(job.metrics().tasks["numbers"].processes[-1], signal.SIGKILL)
    finished(job, collector, {"numbers": 4})


def _process_of(job: ps.Job, task: str, restarts: int) -> Callable[[], bool]:
    """Whether the process that came after so many restarts is known."""

    def known() -> bool:
        metrics = job.metrics().tasks[task]
        return metrics.restarts == restarts and len(metrics.processes) == 1

    return known
