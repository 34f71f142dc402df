"""From topic to topic through one Python task: Penstock, Spark's own queries, and the bare clients beside it.

1,000 records/s of 100 bytes, each with the time it was due in a header; its latency ends when the consumer
of the bench has it. The highest rate is that at which a full topic is drained. CPU is of all processes of a
contestant, the clients and the broker not among them. Contestants take turns in one run, on one broker.

All of it is in a process of its own: Spark finds its connector only if it is there when its JVM starts.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy

from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Operator, Result, median, ratio
from penstock.bench.kafka_clients import Arrived, Listener, PacedProducer, Sent, fill
from penstock.bench.kafka_contestants import (
    BATCHED,
    PEERS,
    SLOTS,
    Place,
    Running,
    connector_session,
    connector_version,
    is_installed,
    peer,
    penstock_flow,
    spark_micro_batches,
    spark_real_time,
)
from penstock.bench.own_session import ANSWER, OwnSession
from penstock.extras import require
from penstock.processes import steady_cpu_of
from penstock.testing.kafka_broker import KafkaBroker
from penstock.testing.kafka_jars import JarsError

RATE_PER_S: Final = 1000.0
ENOUGH_PER_S: Final = 50_000.0
VALID_LATE_MS: Final = 2.0
OWN, OWN_BATCHED, REAL_TIME, MICRO, BARE = (
    "penstock",
    "penstock_batched",
    "spark_real_time",
    "spark_micro_batches",
    "bare_clients",
)
_PATIENCE_S: Final = 20.0
_FIRST_S: Final = 60.0
_WHOLE_S: Final = 1800.0

Start = Callable[[Place], AbstractContextManager[int]]


@dataclass(frozen=True, slots=True)
class Length:
    """How long a turn is, what of its beginning is cut off, how many there are, and how full a topic is."""

    turn_s: float
    warm_up_s: float
    turns: int
    full: int


LENGTHS: Final = {
    Effort.QUICK: Length(turn_s=4, warm_up_s=2, turns=1, full=100_000),
    Effort.FULL: Length(turn_s=20, warm_up_s=10, turns=3, full=1_000_000),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A contestant at 1,000 records/s: CPU is that of a record, `late_p99_ms` the lag of the producer."""

    p50_ms: float
    p99_ms: float
    cpu_us: float
    records: int
    lost: int
    doubled: int
    late_p99_ms: float


class Bed:
    """A broker with new topics for each turn."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self._numbers = count()

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Two topics of one partition, gone afterwards: what they hold need not stay on the disk."""
        number = next(self._numbers)
        topics = (f"from-{number}", f"to-{number}")
        for topic in topics:
            self._broker.create_topic(topic)
        try:
            yield Place(self._broker.servers, *topics)
        finally:
            for topic in topics:
                self._broker.delete_topic(topic)

    @property
    def pid(self) -> int:
        """The broker's."""
        assert self._broker.pid is not None, "the broker runs"
        return self._broker.pid


def paced(bed: Bed, start: Start | None, length: Length) -> Turn | None:
    """The latency and the CPU of a contestant, or of the clients alone; None if nothing came."""
    with bed.place() as place, ExitStack() as opened:
        listener = opened.enter_context(
            Listener(place.servers, place.source if start is None else place.sink)
        )
        root = None if start is None else opened.enter_context(start(place))
        fill(place.servers, place.source, 1)
        if not listener.begun(_FIRST_S):
            return None
        producer = opened.enter_context(PacedProducer(place.servers, place.source, RATE_PER_S))
        producer.begun()
        clients = (listener.pid, producer.pid)
        time.sleep(length.warm_up_s)
        pids = (lambda: [*clients]) if root is None else Running(root, (bed.pid, *clients)).pids
        before_s = steady_cpu_of(pids())
        time.sleep(length.turn_s)
        cpu_s = steady_cpu_of(pids()) - before_s
        sent = producer.stop()
        return turn(listener.await_all(sent.records, _PATIENCE_S), sent, length, cpu_s)


def turn(arrived: Arrived, sent: Sent, length: Length, cpu_s: float) -> Turn | None:
    """What counts is what was due after the warm-up, which begins with the first record that was due."""
    begin_ns = arrived.due_ns[arrived.due_ns > 0].min(initial=sys.maxsize) + length.warm_up_s * 1e9
    kept = arrived.due_ns >= begin_ns
    latency_ms = (arrived.arrived_ns - arrived.due_ns)[kept].astype(float) * 1e-6
    if not len(latency_ms):
        return None
    p50_ms, p99_ms = (float(value) for value in numpy.percentile(latency_ms, [50, 99]))
    return Turn(
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        cpu_us=cpu_s * 1e6 / (RATE_PER_S * length.turn_s),
        records=len(latency_ms),
        lost=arrived.missing(sent.records),
        doubled=arrived.doubled,
        late_p99_ms=sent.late_p99_ms(arrived.number[kept]),
    )


def drained(bed: Bed, start: Start, length: Length) -> float | None:
    """Records per second out of a full topic; None if not all of them came."""
    with bed.place() as place, ExitStack() as opened:
        fill(place.servers, place.source, length.full)
        listener = opened.enter_context(Listener(place.servers, place.sink))
        opened.enter_context(start(place))
        if not listener.begun(_FIRST_S):
            return None
        arrived = listener.await_all(length.full, _PATIENCE_S)
        return None if arrived.missing(length.full) else arrived.per_s


@dataclass(slots=True)
class Measured:
    """Turns and highest rates of each contestant, and why some have none."""

    turns: dict[str, list[Turn | None]] = field(default_factory=dict)
    highest_per_s: dict[str, list[float | None]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def told(self, name: str) -> Iterator[None]:
        """A contestant that is not Penstock may fail: that is told, and it takes part no longer."""
        try:
            yield
        except Exception as problem:
            if name.startswith(OWN):
                raise
            self.skipped[name] = in_a_line(problem)


def in_a_line(problem: Exception) -> str:
    """The first line of what went wrong, which may be a whole stack of Java."""
    said = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {said[0] if said else ''}"[:200]


def contestants(measured: Measured) -> dict[str, Start]:
    """Those that can take part; the others are noted with the reason."""
    starts: dict[str, Start] = {OWN: penstock_flow}
    try:
        spark = connector_session()
        starts[REAL_TIME] = partial(spark_real_time, spark)
        starts[MICRO] = partial(spark_micro_batches, spark)
    except JarsError as problem:
        bench_session(SLOTS)
        measured.skipped |= dict.fromkeys((REAL_TIME, MICRO), in_a_line(problem))
    for name in PEERS:
        if is_installed(name):
            starts[name] = partial(peer, name)
        else:
            measured.skipped[name] = "not installed"
    return starts


def contest(effort: Effort) -> Result:
    """All turns, in this process."""
    length, measured = LENGTHS[effort], Measured()
    starts = contestants(measured)
    highest: dict[str, Start] = {
        **starts,
        OWN_BATCHED: partial(penstock_flow, lifetime=BATCHED, headers=False),
    }
    measured.turns = {name: [] for name in (BARE, *starts)}
    measured.highest_per_s = {name: [] for name in highest}
    with KafkaBroker() as broker:
        bed = Bed(broker)
        for number in range(length.turns):
            order = [*measured.turns][:: 1 if number % 2 == 0 else -1]
            for name in (one for one in order if one not in measured.skipped):
                with measured.told(name):
                    measured.turns[name].append(paced(bed, starts.get(name), length))
            for name in (one for one in highest if one not in measured.skipped):
                with measured.told(name):
                    measured.highest_per_s[name].append(drained(bed, highest[name], length))
    return summarise(measured)


def summarise(measured: Measured) -> Result:
    """Figures and checks from all turns; a contestant that was skipped has none, and fails its check."""
    p50_ms = {
        name: median([one.p50_ms for one in turns if one is not None])
        for name, turns in measured.turns.items()
    }
    batched = median([one for one in measured.highest_per_s.get(OWN_BATCHED, []) if one is not None])
    figures = {
        "spark_connector_version": connector_version(),
        **{f"{name}_skipped": why for name, why in measured.skipped.items()},
        "at_1000_records_per_s": {
            name: [None if one is None else asdict(one) for one in turns]
            for name, turns in measured.turns.items()
            if turns
        },
        "highest_records_per_s": {name: found for name, found in measured.highest_per_s.items() if found},
    }
    own = [one for one in measured.turns[OWN] if one is not None]
    known = [one for turns in measured.turns.values() for one in turns if one is not None]
    late_ms = max((one.late_p99_ms for one in known), default=None)
    checks = [
        Check("p50 / JVM-only real-time query", ratio(p50_ms[OWN], p50_ms.get(REAL_TIME)), "<=", 1.5),
        Check("p50 / micro-batches", ratio(p50_ms[OWN], p50_ms.get(MICRO)), "<=", 0.1),
        Check("records/s of 100 bytes, batched", batched, ">=", ENOUGH_PER_S),
        Check("valid run: worst lag of the producer p99, ms", late_ms, "<=", VALID_LATE_MS),
        Check("records lost", sum(one.lost for one in own) if own else None, "==", 0),
        Check("records duplicated", sum(one.doubled for one in own) if own else None, "==", 0),
    ]
    return Result("kafka", figures, checks)


class _Answer(msgspec.Struct):
    bench: str
    figures: dict[str, Any]
    checks: list["_Checked"]


class _Checked(msgspec.Struct):
    name: str
    value: float | None
    op: Operator
    bar: float


def bench(effort: Effort) -> Result:
    """Have it run by a process of its own."""
    require("confluent_kafka", "kafka", "penstock bench kafka")
    command = [sys.executable, "-c", "from penstock.bench.kafka import answer; answer()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with OwnSession(command, environment=environment, directory=Path.cwd()) as own:
        said = msgspec.json.decode(own.ask(effort.value, _WHOLE_S).text, type=_Answer)
    checks = [Check(one.name, one.value, one.op, one.bar) for one in said.checks]
    return Result(said.bench, said.figures, checks)


def answer() -> None:
    """What that process does: one contest for each line."""
    for line in sys.stdin:
        print(ANSWER + contest(Effort(line.strip())).to_json(), flush=True)
