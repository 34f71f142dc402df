"""Brokers that are slow, die, come back, or leave a partition to another one: nothing is lost or doubled."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.io import kafka_sink
from penstock.io.protocol import DeliveryError, SourceClock
from penstock.testing import KafkaBroker
from tests.io.sink_context import FakeContext
from tests.kafka_cluster import consumed, new_topic

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def own_broker(broker: KafkaBroker) -> Iterator[KafkaBroker]:
    """One that may be killed; after the common one, so that a machine that has none skips.

    On a busy machine neither it nor the one beside it is given up before a test does that.
    """
    with KafkaBroker(silent_s=60) as started:
        yield started


class Ends:
    """A sink and a reader of the same topic."""

    def __init__(self, topic: str, servers: str) -> None:
        self.sink = penstock.to_kafka(topic, servers=servers)
        self.sink.open(FakeContext())
        source = penstock.kafka(topic, servers=servers)
        self.reader = source.open(f"{topic}-0", 0, SourceClock(0, 0))

    def write(self, *values: bytes) -> None:
        for value in values:
            self.sink.write(value)

    def read(self, count: int) -> list[bytes]:
        """So many, or as many as come in a time in which all would."""
        items: list[bytes] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(items) < count and time.monotonic() < deadline:
            items += self.reader.read(512, 0.05)[0]
        return items

    def settled(self, count: int) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while (safe := self.sink.settle()) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        return safe

    def close(self) -> None:
        self.sink.close()
        self.reader.close()


def suspend(pid: int) -> None:
    """Returns when no thread of it runs any more: on a busy machine that may take a while."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    deadline = time.monotonic() + PATIENCE_S
    while any(one.read_text().rpartition(")")[2].split()[0] != "T" for one in threads.glob("*/stat")):
        assert time.monotonic() < deadline, "it does not stop"
        time.sleep(0.01)


def test_a_leader_that_moves_is_followed(own_broker: KafkaBroker) -> None:
    with KafkaBroker(beside=own_broker) as second:
        own_broker.create_topic("moves", nodes=[2, 1])
        deadline = time.monotonic() + PATIENCE_S
        while second.leader("moves") is None and time.monotonic() < deadline:
            time.sleep(0.02)
        ends = Ends("moves", f"{own_broker.servers},{second.servers}")
        ends.write(*(b"%d" % number for number in range(100)))
        assert ends.settled(100) == 100
        assert ends.read(100) == [b"%d" % number for number in range(100)]
        assert own_broker.leader("moves") == 2
        ends.write(*(b"%d" % number for number in range(100, 200)))
        second.stop()
        ends.write(*(b"%d" % number for number in range(200, 300)))
        ends.sink.flush()
        assert own_broker.leader("moves") == 1
        assert ends.read(200) == [b"%d" % number for number in range(100, 300)]
        ends.close()
    assert [message.value() for message in consumed(own_broker, "moves")] == [
        b"%d" % number for number in range(300)
    ]


def test_a_broker_that_is_slow_is_waited_for(own_broker: KafkaBroker) -> None:
    ends = Ends(new_topic(own_broker), own_broker.servers)
    ends.write(b"before")
    assert (ends.settled(1), ends.read(1)) == (1, [b"before"])
    assert own_broker.pid is not None
    suspend(own_broker.pid)
    try:
        ends.write(b"meanwhile")
        time.sleep(0.3)
        assert ends.sink.settle() == 1
        assert ends.reader.read(512, 0.05) == ([], None)
    finally:
        os.kill(own_broker.pid, signal.SIGCONT)
    assert (ends.settled(2), ends.read(1)) == (2, [b"meanwhile"])
    ends.close()


def test_what_a_dead_broker_has_not_taken_is_not_settled_until_it_is_back(own_broker: KafkaBroker) -> None:
    topic = new_topic(own_broker)
    ends = Ends(topic, own_broker.servers)
    ends.write(b"before")
    assert (ends.settled(1), ends.read(1)) == (1, [b"before"])
    own_broker.kill()
    ends.write(b"meanwhile")
    time.sleep(0.5)
    assert ends.sink.settle() == 1
    assert ends.reader.read(512, 0.05) == ([], None), "a reader waits"
    own_broker.start(silent_s=1.5)
    assert (ends.settled(2), ends.read(1)) == (2, [b"meanwhile"])
    assert [message.value() for message in consumed(own_broker, topic)] == [b"before", b"meanwhile"]
    ends.close()


def test_a_broker_that_stays_away_is_told_in_the_end(own_broker: KafkaBroker) -> None:
    topic = new_topic(own_broker)
    sink = penstock.to_kafka(topic, servers=own_broker.servers, config={"message.timeout.ms": 700})
    sink.open(FakeContext())
    own_broker.kill()
    sink.write(b"in vain")
    with pytest.raises(DeliveryError, match=rf'did not take a record for topic "{topic}" in time'):
        sink.flush()


class Silent:
    """A producer that never hears of what it was given; a real one did that once, and nobody knows when."""

    def poll(self, _timeout_s: float) -> None:
        """Nothing."""

    def flush(self, timeout_s: float) -> None:
        time.sleep(timeout_s)

    def produce(self, *_: Any, **__: Any) -> None:
        """Taken, and never heard of again."""


def test_a_client_that_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_sink, "_GRACE_S", 0.1)
    sink = penstock.to_kafka("topic", servers="nobody:9092", config={"message.timeout.ms": 100})
    monkeypatch.setattr(kafka_sink, "new_client", lambda *_: Silent())
    monkeypatch.setattr(kafka_sink, "check_topic", lambda *_: None)
    sink.open(FakeContext())
    sink.write(b"in vain")
    with pytest.raises(DeliveryError, match="neither taken nor refused 1 records"):
        sink.flush()
