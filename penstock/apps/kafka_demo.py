"""From topic to topic on a broker of its own: how long records take, and that none is lost."""

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.flow import Flow, elastic
from penstock.io import kafka, to_kafka
from penstock.testing.kafka_broker import KafkaBroker

PARTITIONS: Final = 2
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the records that were sent; times in ms, from the producer to the consumer."""

    sent: int
    doubled: int
    times_ms: list[float] = field(repr=False)

    @property
    def lost(self) -> int:
        """Records that never arrived."""
        return self.sent - len(self.times_ms)

    def percentile_ms(self, percent: int) -> float:
        """How long so many percent of them took at most."""
        return statistics.quantiles(self.times_ms, n=100, method="inclusive")[percent - 1]


def shout(text: str) -> str:
    """The task of the demo."""
    return text.upper()


def make_flow(servers: str) -> Flow:
    """words -> shout -> loud, both ends in Kafka."""
    flow = Flow("loud", ids=True)
    words = flow.source(kafka("words", servers=servers, value="text"), name="words")
    words.map(shout, parallelism=elastic(1, 2)).sink(
        to_kafka("loud", servers=servers, value="text"), name="loud"
    )
    flow.constrain("50 ms", ["words->shout", "shout", "shout->loud"])
    return flow


def kafka_demo(seconds: float, rate_per_s: float, say: Callable[[str], None]) -> Outcome:
    """Run it for so long; `say` hears how far it is."""
    import penstock

    say("a broker and Spark start")
    with KafkaBroker() as broker:
        broker.create_topic("words", PARTITIONS)
        broker.create_topic("loud")
        job = penstock.run(make_flow(broker.servers))
        count = round(seconds * rate_per_s)
        flows = threading.Event()

        def produce() -> None:
            _produce(broker.servers, count, rate_per_s, flows)

        threading.Thread(target=produce, daemon=True).start()
        say(f"records flow for {seconds:g} s")
        outcome = _consume(broker.servers, count, time.monotonic() + seconds + _PATIENCE_S, flows)
        job.stop()
        return outcome


def _produce(servers: str, count: int, rate_per_s: float, flows: threading.Event) -> None:
    """A record, and when it has arrived the others at even times; each says when it was sent."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    start_s = time.monotonic()
    for number in range(count):
        ahead_s = start_s + number / rate_per_s - time.monotonic()
        if ahead_s > 0:
            time.sleep(ahead_s)
        producer.produce("words", f"word {number} {time.monotonic_ns()}", partition=number % PARTITIONS)
        producer.poll(0)
        if number == 0:
            producer.flush()
            flows.wait(_PATIENCE_S)
            start_s = time.monotonic()
    producer.flush()


def _consume(servers: str, count: int, until_s: float, flows: threading.Event) -> Outcome:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "demo", "enable.auto.commit": False})
    consumer.assign([TopicPartition("loud", 0, 0)])
    times_ms: dict[int, float] = {}
    doubled = 0
    while len(times_ms) < count and time.monotonic() < until_s:
        message: Any = consumer.poll(0.5)
        if message is None or message.error() is not None:
            continue
        _, number, sent_ns = message.value().split()
        doubled += int(number) in times_ms
        times_ms.setdefault(int(number), (time.monotonic_ns() - int(sent_ns)) / 1e6)
        flows.set()
    consumer.close()
    return Outcome(count, doubled, list(times_ms.values()))
