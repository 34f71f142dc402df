"""Trials from topic to topic: a broker of their own, who writes numbered records, and what arrived.

A record is due when the broker was given it, and has arrived when the sink handed its result over: both by
the wall clock, which is what Kafka keeps.
"""

import importlib.util
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy

import penstock
from penstock.bench.harness import Check
from penstock.epochs.commits import last_positions
from penstock.faults import checker
from penstock.faults.bed import END_S, HELD_S, SETTLES_S, WARM_ITEMS, Bed, await_commit
from penstock.faults.items import unchanged
from penstock.faults.row import Outcome
from penstock.faults.victims import wait_until
from penstock.io.kafka_records import ID_HEADER
from penstock.spark.job import Job
from penstock.testing.arrivals import Entries
from penstock.testing.kafka_broker import KafkaBroker
from penstock.testing.kafka_jars import JarsError, cached_jars
from penstock.wire.ids import origin_of

SOURCE, TASK, SINK = "records", "task", "out"
ORDERS, INVOICES = "orders", "invoices"
PARTITIONS: Final = 3
RATE_PER_S: Final = 600
_TICK_S: Final = 0.01
_MANY: Final = 1000
_LOOK_S: Final = 0.5


class Record(NamedTuple):
    """One record behind the sink: the id in its header, the number of what it was made of, and the times."""

    item_id: bytes
    number: int
    due_ns: int
    arrived_ns: int


def lacks_kafka() -> str:
    """What keeps a broker from being started here."""
    if importlib.util.find_spec("confluent_kafka") is None:
        return "confluent-kafka is not installed"
    try:
        cached_jars()
    except JarsError as problem:
        return str(problem)
    return ""


def flow(servers: str) -> penstock.Flow:
    """From topic to topic; one replica of the source has two partitions. `penstock run` runs it, too."""
    made = penstock.Flow("trial", ids=True)
    orders = penstock.kafka(ORDERS, servers=servers, value="json")
    passed = made.source(orders, name=SOURCE, replicas=2).map(unchanged, name=TASK, parallelism=2)
    passed.sink(penstock.to_kafka(INVOICES, servers=servers, value="json"), name=SINK)
    return made


class Feeder:
    """Writes numbered records at a rate until it is told to end; record n goes to partition n mod 3."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, "log_level": 0})
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="feeder", daemon=True)
        self.fed = 0

    def start(self) -> None:
        """In a thread of its own."""
        self._thread.start()

    def end(self) -> int:
        """How many there are, all of them at the broker."""
        self._over.set()
        self._thread.join()
        left = self._producer.flush(30.0)
        assert left == 0, f"{left} records were not taken by the broker"
        return self.fed

    def _feed(self) -> None:
        began_s = time.monotonic()
        while not self._over.wait(_TICK_S):
            due = int((time.monotonic() - began_s) * RATE_PER_S)
            while self.fed < due:
                value = json.dumps({"number": self.fed, "at_ns": time.time_ns()})
                self._producer.produce(ORDERS, value, partition=self.fed % PARTITIONS)
                self.fed += 1
            self._producer.poll(0)


class Behind:
    """What is behind the sink."""

    def __init__(self, servers: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.records: list[Record] = []
        self._consumer = Consumer({"bootstrap.servers": servers, "group.id": "trial", "log_level": 0})
        self._consumer.assign([TopicPartition(INVOICES, 0, 0)])

    def numbers(self) -> int:
        """How many different records have arrived by now."""
        came = _MANY
        while came == _MANY:  # with fewer all are there: others come all the time
            found = self._consumer.consume(_MANY, 0.05)
            for message in found:
                assert message.error() is None, message.error()
                self.records.append(_record(message))
            came = len(found)
        return len({record.number for record in self.records})

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


def _record(message: Any) -> Record:
    value = json.loads(message.value())
    _, arrived_ms = message.timestamp()
    return Record(dict(message.headers())[ID_HEADER], value["number"], value["at_ns"], arrived_ms * 1_000_000)


class KafkaBed:
    """A trial with a broker, topics and a feeder at work."""

    def __init__(self, bed: Bed, servers: str) -> None:
        self.bed = bed
        self.servers = servers
        self.feeder = Feeder(servers)
        self.behind = Behind(servers)
        self._struck_ns = 0
        self._committed: dict[int, int] = {}

    def flowing(self) -> Job:
        """The flow, with a first commit when some records have arrived."""
        job = self.bed.run(flow(self.servers))
        self.feeder.start()
        self.await_numbers(WARM_ITEMS)
        await_commit(job)
        return job

    def await_numbers(self, count: int) -> None:
        """Until so many different records have arrived."""
        wait_until(lambda: self.behind.numbers() >= count, f"{count} records arrive", END_S)

    def strike(self, fault: Any, least_s: float = 0.2, most_s: float = 1.0) -> None:
        """The fault at a random time, after a look at what is committed."""

        def noted() -> None:
            self._committed = committed(self.bed.checkpoint)
            self._struck_ns = time.time_ns()
            fault()

        self.bed.strike(noted, least_s, most_s)

    def settle(self, within_s: float = SETTLES_S) -> None:
        """More records until the bound has held for some seconds again, then until all have arrived."""
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            time.sleep(_LOOK_S)
            self.behind.numbers()
            entries = entries_of(self.behind.records)
            recovered_s = checker.recovered_s(entries, self._struck_ns)
            if (
                recovered_s is not None
                and checker.remaining_s(entries, self._struck_ns) >= recovered_s + HELD_S
            ):
                break
        self.await_numbers(self.feeder.end())

    def outcome(self) -> Outcome:
        """All checks of the records."""
        self.behind.numbers()
        records = self.behind.records
        entries = entries_of(records)
        fed = [len(range(number, self.feeder.fed, PARTITIONS)) for number in range(PARTITIONS)]
        checks = [
            *self.bed.checks,
            Check("committed before the fault", sum(self._committed.values()), ">", 0),
            Check("lost", entries.lost(dict(enumerate(fed))), "==", 0),
            Check(
                "twice though committed",
                checker.twice_though_committed(entries, self._committed, self._struck_ns),
                "==",
                0,
            ),
            Check("records with several ids, ids of several records", ids_mixed_up(records), "==", 0),
        ]
        remaining_s = round(checker.remaining_s(entries, self._struck_ns), 2)
        checks.append(Check("items due after the fault, s", remaining_s, ">", 0))
        figures = {
            **self.bed.figures,
            "items": len(entries),
            "duplicated": entries.duplicated(),
            "remaining_s": remaining_s,
        }
        return Outcome(figures, checks, checker.recovered_s(entries, self._struck_ns))


@contextmanager
def kafka_bed(bed: Bed) -> Iterator[KafkaBed]:
    """With a broker and two topics, which are gone afterwards."""
    with KafkaBroker() as broker:
        broker.create_topic(ORDERS, PARTITIONS)
        broker.create_topic(INVOICES)
        made = KafkaBed(bed, broker.servers)
        try:
            yield made
        finally:
            made.behind.close()


def committed(checkpoint: Path) -> dict[int, int]:
    """The offset of each partition that the last commit covers; none without a commit."""
    splits = last_positions(checkpoint).get(SOURCE, {})
    return {int(split.rpartition("-")[2]): position.offset for split, position in splits.items()}


def entries_of(records: list[Record]) -> Entries:
    """By the partition and the offset that their ids name."""
    origins = {origin_of(SOURCE, f"{ORDERS}-{number}"): number for number in range(PARTITIONS)}
    rows = []
    for record in records:
        origin, offset, *_ = map(int, record.item_id.split(b"."))
        rows.append((origins[origin], offset, record.due_ns, record.arrived_ns, 0))
    table = numpy.array(rows, dtype=numpy.int64).reshape(-1, 5)
    return Entries(*(table[:, column] for column in range(5)))


def ids_mixed_up(records: list[Record]) -> int:
    """How many pairs of id and record there are beyond one for each: a copy must have the id of the first."""
    pairs = {(record.item_id, record.number) for record in records}
    ids, numbers = {item_id for item_id, _ in pairs}, {number for _, number in pairs}
    return 2 * len(pairs) - len(ids) - len(numbers)
