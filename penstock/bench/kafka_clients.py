"""The clients at both ends of a contestant, each in a process of its own so that they share no interpreter.

A record is 100 bytes, the first eight of them its number. Its header says when it was due, in nanoseconds of
CLOCK_MONOTONIC, which all processes of a host share.
"""

import os
import time
from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import numpy
from numpy.typing import NDArray

from penstock.bench.precedence import take_precedence
from penstock.orphans import end_with

DUE: Final = "due-ns"
RECORD_BYTES: Final = 100
_NUMBER_BYTES: Final = 8
_FILLING: Final = bytes(RECORD_BYTES - _NUMBER_BYTES)
_STARTS_WITHIN_S: Final = 60.0
_AFTERWARDS_S: Final = 0.5  # for what would come again
_LOOK_S: Final = 0.05
_MANY: Final = 10_000
# Prompt rather than many at a time, at both ends.
_CONSUMER: Final = {"group.id": "bench", "enable.auto.commit": False, "log_level": 0}
_PROMPT: Final = {"linger.ms": 0, "log_level": 0}
_FILL: Final = {"linger.ms": 20, "queue.buffering.max.messages": 1_000_000, "log_level": 0}


@dataclass(frozen=True, slots=True)
class Sent:
    """How late a producer was with each of the records that it sent at even times, numbered from 1 on.

    Record 0 is the one that showed that the contestant runs. `precedence` is what its process was given.
    """

    late_ns: NDArray[numpy.int64]
    precedence: str

    @property
    def records(self) -> int:
        """How many there are in all."""
        return len(self.late_ns) + 1

    def late_p99_ms(self, numbers: NDArray[numpy.int64]) -> float:
        """Of these records."""
        return float(numpy.percentile(self.late_ns[numbers - 1], 99)) * 1e-6


@dataclass(frozen=True, slots=True)
class Arrived:
    """By record that arrived: its number, when it was due (0 if it does not say) and when it came."""

    number: NDArray[numpy.int64]
    due_ns: NDArray[numpy.int64]
    arrived_ns: NDArray[numpy.int64]

    def missing(self, sent: int) -> int:
        """How many of so many never came."""
        return sent - len(numpy.unique(self.number))

    @property
    def gaps(self) -> int:
        """How many are missing before the last that came; topics of one partition keep the order."""
        return self.missing(int(self.number.max(initial=-1)) + 1)

    @property
    def doubled(self) -> int:
        """How many came again."""
        return len(self.number) - len(numpy.unique(self.number))

    @property
    def per_s(self) -> float | None:
        """The rate of the middle eight tenths: neither the start nor the end of a backlog counts."""
        first, last = len(self.arrived_ns) // 10, len(self.arrived_ns) * 9 // 10
        if last - first < 2:
            return None
        took_ns = int(self.arrived_ns[last] - self.arrived_ns[first])
        return (last - first) * 1e9 / took_ns if took_ns > 0 else None


def record(number: int) -> bytes:
    """The value of a record."""
    return number.to_bytes(_NUMBER_BYTES, "big") + _FILLING


def fill(servers: str, topic: str, count: int) -> None:
    """Put so many records into a topic, as fast as it goes."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, **_FILL})
    for number in range(count):
        while True:
            try:
                producer.produce(topic, record(number))
                break
            except BufferError:
                producer.poll(_LOOK_S)
        if number % _MANY == 0:
            producer.poll(0)
    producer.flush()


class _Line(NamedTuple):
    """What joins a client to whoever started it."""

    begun: Any
    over: Any
    count: Any
    answer: Connection


class _Client(AbstractContextManager[Any]):
    """A process that does one thing, and answers once."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        context = get_context("spawn")
        self._begun, self._over = context.Event(), context.Event()
        self._count = context.Value("q", 0, lock=False)
        self._answers, answer = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_supervised,
            args=(os.getpid(), work, _Line(self._begun, self._over, self._count, answer), *arguments),
        )
        self._process.start()
        answer.close()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    def begun(self, timeout_s: float = _STARTS_WITHIN_S) -> bool:
        """Wait until it has come so far."""
        return self._begun.wait(timeout_s)

    def _answer(self) -> Any:
        """Tell it that it is over, and wait for its answer."""
        self._over.set()
        try:
            return self._answers.recv()
        except EOFError:
            raise RuntimeError(f"a client of the bench ended with code {self._process.exitcode}") from None

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.join()
        self._answers.close()


class PacedProducer(_Client):
    """Records at even times until it is stopped; `begun` when it has sent the first."""

    def __init__(self, servers: str, topic: str, rate_per_s: float) -> None:
        super().__init__(_produce, servers, topic, rate_per_s)

    def stop(self) -> Sent:
        """When all it has sent is at the broker."""
        sent: Sent = self._answer()
        return sent


class Listener(_Client):
    """Notes all that comes out of a topic, from its beginning on; `begun` when the first has come.

    A `prompt` one goes before other processes: for records that come now and then, not for a full topic.
    """

    def __init__(self, servers: str, topic: str, *, prompt: bool = False) -> None:
        super().__init__(_consume, servers, topic, prompt)

    def await_all(self, count: int, patience_s: float) -> Arrived:
        """What has come when so many have, or nothing new has for that long."""
        seen, heard_s = 0, time.monotonic()
        while seen < count and time.monotonic() - heard_s < patience_s:
            time.sleep(_LOOK_S)
            if self._count.value > seen:
                seen, heard_s = self._count.value, time.monotonic()
        time.sleep(_AFTERWARDS_S)
        return self._arrived()

    def await_many(self, count: int, within_s: float) -> Arrived:
        """What has come when so many have, or that time is over."""
        until_s = time.monotonic() + within_s
        while self._count.value < count and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
        return self._arrived()

    def _arrived(self) -> Arrived:
        arrived: Arrived = self._answer()
        return arrived


def _supervised(parent: int, work: Callable[..., None], *arguments: Any) -> None:
    end_with(parent)
    work(*arguments)


def _produce(line: _Line, servers: str, topic: str, rate_per_s: float) -> None:
    from confluent_kafka import Producer

    precedence = take_precedence()
    producer = Producer({"bootstrap.servers": servers, **_PROMPT})
    producer.list_topics(topic, timeout=_STARTS_WITHIN_S)  # connected before the first record is due
    late_ns = array("q")
    start_ns = time.monotonic_ns() + 100_000_000
    while not line.over.is_set():
        due_ns = start_ns + round(len(late_ns) * 1e9 / rate_per_s)
        value = record(len(late_ns) + 1)
        headers: dict[str, str | bytes | None] = {DUE: due_ns.to_bytes(8, "big")}
        producer.poll(0)
        ahead_s = (due_ns - time.monotonic_ns()) * 1e-9
        if ahead_s > 0:
            time.sleep(ahead_s)
        late_ns.append(time.monotonic_ns() - due_ns)
        producer.produce(topic, value, headers=headers)
        if len(late_ns) == 1:
            line.begun.set()
    producer.flush()
    line.answer.send(Sent(numpy.array(late_ns, dtype=numpy.int64), precedence))


def _consume(line: _Line, servers: str, topic: str, prompt: bool) -> None:  # noqa: FBT001 - by place alone
    from confluent_kafka import Consumer, TopicPartition

    if prompt:
        take_precedence()
    consumer = Consumer({"bootstrap.servers": servers, **_CONSUMER})
    consumer.assign([TopicPartition(topic, 0, 0)])
    numbers, dues_ns, arrived_ns = array("q"), array("q"), array("q")
    while not line.over.is_set():
        first = consumer.poll(_LOOK_S)
        now_ns = time.monotonic_ns()
        messages: list[Any] = [] if first is None else [first, *consumer.consume(_MANY, 0)]
        for message in messages:
            if message.error() is None:
                headers = dict(message.headers() or ())
                numbers.append(int.from_bytes(message.value()[:_NUMBER_BYTES], "big"))
                dues_ns.append(int.from_bytes(headers.get(DUE, b""), "big"))
                arrived_ns.append(now_ns)
        line.count.value = len(numbers)
        if numbers and not line.begun.is_set():
            line.begun.set()
    consumer.close()
    columns = (numpy.array(column, dtype=numpy.int64) for column in (numbers, dues_ns, arrived_ns))
    line.answer.send(Arrived(*columns))
