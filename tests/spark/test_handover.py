"""The shuffle of one process: rows are handed over, each writer has room of its own, and nothing stays."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

import penstock as ps
from penstock.spark.bridge import Bridge
from penstock.testing.collector import Collector
from tests.spark.items import assert_exactly_once, numbered
from tests.spark.test_crashes import same, wait_for

pytestmark = pytest.mark.spark
in_one_process = pytest.mark.skipif("PENSTOCK_TEST_MASTER" in os.environ, reason="executors of their own")


def inbox(spark: SparkSession, writers: int, room_bytes: int) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.penstock.bridge.Inbox(writers, room_bytes)


def share(spark: SparkSession, memory_bytes: int = 1 << 30) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.penstock.bridge.ShuffleMemory(memory_bytes).share()


def sender(spark: SparkSession, memory: Any, ahead_bytes: int = 0) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.penstock.bridge.Sender(memory, ahead_bytes)


def drained(box: Any) -> list[Any]:
    found = []
    while (row := box.take(0)) is not None:
        found.append(row)
    return found


def test_rows_are_taken_in_their_order_until_all_writers_have_ended(spark: SparkSession) -> None:
    box = inbox(spark, 2, 1000)
    first, second = (box.channel(sender(spark, share(spark))) for _ in range(2))
    assert first.put("a", 10, 0)
    assert second.put("b", 10, 0)
    first.end()
    assert drained(box) == ["a", "b"]
    assert not box.isOver()
    assert second.put("c", 10, 0)
    second.end()
    assert not box.isOver(), "one row is still there"
    assert drained(box) == ["c"]
    assert box.isOver()


def test_a_writer_whose_room_is_full_holds_nobody_else_back(spark: SparkSession) -> None:
    box = inbox(spark, 2, 200)
    fast, slow = (box.channel(sender(spark, share(spark))) for _ in range(2))
    assert fast.put("large", 5000, 0), "an empty channel takes any row"
    assert not fast.put("more", 1, 0)
    assert not fast.put("more", 1, 20), "nor does it get room by waiting"
    assert slow.put("a", 60, 0)
    assert slow.put("b", 40, 0)
    assert not slow.put("c", 1, 0), "half of the room is its own"
    assert box.take(0) == "large"
    assert fast.put("more", 1, 0)
    assert drained(box) == ["a", "b", "more"]


def filled(channel: Any) -> int:
    """How many rows of 10 bytes it takes."""
    count = 0
    while channel.put(count, 10, 0):
        count += 1
    return count


def test_a_writer_goes_on_to_others_when_a_channel_is_full(spark: SparkSession) -> None:
    """What it may have waiting is shared: a full channel holds as much of it as is left for the others."""
    writer = sender(spark, share(spark), ahead_bytes=120)
    boxes = [inbox(spark, 1, 100) for _ in range(3)]
    slow, slower, third = (box.channel(writer) for box in boxes)
    assert filled(slow) == 10 + 6
    assert filled(slower) == 10 + 3
    assert filled(third) == 10 + 2, "there is always something left"
    assert len(drained(boxes[0])) == 16
    assert filled(slow) > 10, "what was taken may be used again"


def test_rows_that_are_larger_than_the_memory_pass_one_at_a_time(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    memory = jvm.org.penstock.bridge.ShuffleMemory(100)
    shuffle, other = memory.share(), memory.share()
    boxes = [inbox(spark, 1, 50) for _ in range(3)]
    first, second = (box.channel(sender(spark, shuffle)) for box in boxes[:2])
    behind = boxes[2].channel(sender(spark, other))
    assert first.put("large", 5000, 0)
    assert memory.heldBytes() == 4950
    assert second.put("small", 50, 0), "what fits into the room of its channel needs no memory"
    assert drained(boxes[1]) == ["small"]
    assert not second.put("too large now", 200, 20)
    assert behind.put("large", 5000, 0), "a shuffle behind this one must go on, or nothing ever would"
    assert drained(boxes[0]) == ["large"]
    assert second.put("alone now", 200, 0)
    shuffle.close()
    other.close()
    assert memory.heldBytes() == 0, "of a shuffle that is over nothing is held, whoever failed"
    assert drained(boxes[1]) == ["alone now"]
    assert memory.heldBytes() == 0


def test_a_reader_waits_no_longer_than_it_wants_to(spark: SparkSession) -> None:
    box = inbox(spark, 1, 100)
    assert box.bytes() == 0
    assert box.take(30) is None
    assert not box.isOver()


class Receiver:
    """Takes rows in the thread of their writer, unless it is busy."""

    class Java:
        implements = ("org.penstock.bridge.Inbox$Shortcut",)

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.is_busy = False

    def take(self, content: str) -> bool:
        if not self.is_busy:
            self.taken.append(content)
        return not self.is_busy


def test_a_row_goes_past_the_queue_only_while_the_reader_waits(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    box, receiver = inbox(spark, 1, 1000), Receiver()
    channel = box.channel(sender(spark, share(spark)))
    box.setShortcut(receiver)
    assert not channel.bypass("nobody waits")
    with ThreadPoolExecutor(1) as reader:
        found = reader.submit(box.take, 20_000)
        wait_for(lambda: channel.bypass("first"))
        assert channel.bypass("second")
        receiver.is_busy = True
        assert not channel.bypass("third")
        assert channel.put("third", 10, 0)
        assert found.result() == "third"
    receiver.is_busy = False
    assert channel.put("fourth", 10, 0)
    assert not channel.bypass("fifth"), "it would overtake another"
    assert receiver.taken == ["first", "second"]
    box.setShortcut(None)


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Another value than is usual, for as long as it takes."""
    context: Any = spark.sparkContext._jsc
    conf = context.sc().conf()
    usual = conf.get(key)
    conf.set(key, value)
    try:
        yield
    finally:
        conf.set(key, usual)


class Held:
    """Lets no item pass before a file is there."""

    def __init__(self, gate: Path) -> None:
        self.gate = gate

    def process(self, item: Any, out: Any) -> None:
        while not self.gate.exists():
            time.sleep(0.01)
        out(item)


@in_one_process
def test_what_waits_is_known_by_channel(spark: SparkSession, collector: Collector, tmp_path: Path) -> None:
    """Two senders and two receivers, each of which has taken one item and stays with it."""
    count, senders, receivers = 2000, 2, 2
    gate = tmp_path / "gate"
    flow = ps.Flow("queued")
    source = flow.source(numbered(count, rate=20_000, partitions=senders), name="numbers")
    source.task(Held(gate), name="held", parallelism=receivers).sink(collector, name="out")
    job = ps.run(flow)
    job.set_measure_every("0.5 s")

    def waiting() -> Any:
        return job.snapshot(1.0).stream("numbers->held").queue

    def all_wait() -> bool:
        sent, queue = job.metrics().tasks["numbers"], waiting()
        all_sent = sent.items_out == count and queue is not None
        return all_sent and queue.envelopes == sent.envelopes_out - receivers

    try:
        wait_for(all_wait, 90)
        snapshot = job.snapshot(1.0)
        stream = snapshot.stream("numbers->held")
        assert stream.queue is not None
        assert snapshot.tasks["held"].backlog_total == stream.queue.items
        # One each, unless the source was late: then it sends what is due together.
        assert count - 100 < (stream.queue.items or 0) <= count - receivers
        assert stream.channels is not None
        ends = [(channel.sender, channel.receiver) for channel in stream.channels]
        assert ends == [(0, 0), (0, 1), (1, 0), (1, 1)]
        for channel in stream.channels:
            assert channel.queue is not None
            assert abs((channel.queue.items or 0) - count / 4) < 100
            assert (channel.queue.bytes or 0) > 26 * (channel.queue.items or 0), "headers at least"
        (held,) = job.metrics().shuffle.values()
        assert 0 <= held.bytes <= held.limit_bytes
        assert held.limit_bytes == (128 << 20) + 3 * (256 << 10), "before two replicas and a sink"
        age_ms = stream.queue.age_ms or 0.0
        wait_for(lambda: waiting().age_ms >= age_ms + 500, 90)
    finally:
        gate.touch()
        ended = job.await_termination(60)
    assert ended
    assert_exactly_once(collector.items(), count, partitions=senders)


def first_is_large(partition: int, index: int, seed: int) -> bytes:
    """More than a worker is given at a time, so that all others wait in the shuffle until it is done."""
    return bytes(9 << 20 if index == 0 else 8)


def dropped(item: bytes) -> None:
    """Where it ends."""


@in_one_process
@pytest.mark.parametrize("queues", ["seen", "counted"])
def test_queue_waits_and_backlogs_are_those_of_the_papers_if_asked(
    spark: SparkSession, tmp_path: Path, queues: str
) -> None:
    """Theirs begin when an item is before its task: the way through the shuffle is none of it."""
    gate, least = tmp_path / "gate", 40
    flow = ps.Flow("papers")
    source = flow.source(ps.paced(first_is_large, rate=20), name="numbers")
    source.task(Held(gate), name="held").sink(dropped, name="out")
    waits_ms: list[float] = []
    with setting(spark, "spark.penstock.queues", queues):
        job = ps.run(flow)
        job.set_measure_every("0.5 s")
        job.set_sampling(1.0)

        def looked() -> Any:
            snapshot = job.snapshot(1.0)
            waits_ms.append(snapshot.tasks["held"].queue_wait_ms or 0.0)
            return snapshot

        try:
            wait_for(lambda: (looked().tasks["held"].backlog_total or 0) >= least, 90)
            queue = looked().stream("numbers->held").queue
            gate.touch()
            wait_for(lambda: looked() and job.metrics().tasks["held"].items_in > least, 90)
        finally:
            gate.touch()
            job.stop()
    assert queue is not None
    assert (queue.items or 0) >= least
    is_seen = queues == "seen"
    assert [part is not None for part in (queue.envelopes, queue.bytes, queue.age_ms)] == [is_seen] * 3
    # They came in two seconds: one second on average, or that of the next one alone.
    assert max(waits_ms) > 500 if is_seen else max(waits_ms) < 250, waits_ms


@in_one_process
def test_a_flow_runs_over_it_and_leaves_none_behind(spark: SparkSession, collector: Collector) -> None:
    jvm: Any = spark._jvm
    manager = jvm.org.apache.spark.penstock.HandoverShuffleManager
    flow = ps.Flow("handed")
    source = flow.source(numbered(2000, rate=1000), name="numbers")
    source.map(same, name="left", parallelism=2).map(same, name="right", parallelism=3).sink(
        collector, name="out"
    )
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 300)
    assert manager.inUse() == 3
    job.boundary()
    assert job.await_termination(60)
    assert_exactly_once(collector.items(), 2000)
    wait_for(lambda: manager.inUse() == 0, 5)


def inflated(item: Any) -> tuple[Any, bytes]:
    return item, bytes(3 << 20)


def deflated(pair: tuple[Any, bytes]) -> Any:
    assert len(pair[1]) == 3 << 20
    return pair[0]


@in_one_process
def test_items_larger_than_the_memory_arrive(spark: SparkSession, collector: Collector) -> None:
    """Six large ones wait for the memory of a third of one at the same time, in two shuffles."""
    with setting(spark, "spark.penstock.shuffle.memory", "1m"):
        flow = ps.Flow("large")
        source = flow.source(numbered(24, rate=1000), name="numbers")
        large = source.map(inflated, name="inflated", parallelism=3).map(same, name="same", parallelism=3)
        large.map(deflated, name="deflated", parallelism=2).sink(collector, name="out")
        assert ps.run(flow).await_termination(60)
    assert_exactly_once(collector.items(), 24)


@in_one_process
def test_what_the_shuffle_between_executors_needs_of_spark_is_tried(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    ours = jvm.org.apache.spark.penstock
    assert ours.LinkShuffleManager.trial() is None
    ours.ShuffleSecret.know(jvm.java.util.Map.of())
    assert ours.LinkShuffleManager.trial() == "the plugin of Penstock made no secret"
    sent = ours.ShuffleSecret.made(spark.sparkContext._jsc.sc().conf())
    assert len(sent["shuffle.secret"]) == 64
    assert ours.LinkShuffleManager.trial() is None
    conf = spark.sparkContext._jsc.sc().conf()  # SparkEnv has it too, but py4j cannot look into that
    conf.set("spark.links.io.mode", "NONE")
    try:
        assert "NONE" in ours.LinkShuffleManager.trial()
    finally:
        conf.remove("spark.links.io.mode")
    assert ours.LinkShuffleManager.fallback() is None, "here nothing goes between executors"


def test_that_sparks_shuffle_is_used_instead_is_told(
    spark: SparkSession, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bridge, "shuffle_problem", lambda self: "there is no secret")
    told: list[str] = []
    flow = ps.Flow("fallback")
    flow.source(numbered(10, rate=1000), name="numbers").sink(collector, name="out")
    assert ps.run(flow, on_notice=told.append).await_termination(30)
    assert told == ["Penstock's shuffle cannot be used, Spark's own is: there is no secret"]
