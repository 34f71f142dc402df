"""From topic to topic through one Python task: Penstock, Spark's own queries, and the bare clients beside it.

1,000 records/s of 100 bytes, each with the time it was due in a header; its latency ends when the consumer
of the bench has it. The highest rate is that at which a full topic is drained. CPU is of all processes of a
contestant, the clients and the broker not among them. Contestants take turns in one run, on one broker, and
a turn whose producer was late is not valid: it is repeated, and shown beside those that count.

All of it is in a process of its own: Spark finds its connector only if it is there when its JVM starts.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    peer,
    penstock_flow,
    spark_micro_batches,
    spark_real_time,
)
from penstock.bench.own_session import ANSWER, NOTE, OwnSession
from penstock.bench.peer_environments import PeerMissingError, is_made, python_of
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
EXPERIMENTS: Final = (REAL_TIME, MICRO, *PEERS)
"""Who can be compared with alone."""
REPEATS: Final = 2
"""How often a turn that is not valid, or in which nothing came, is repeated at most; then it counts."""
_PATIENCE_S: Final = 20.0
_FULL: Final = "full"
_FIRST_S: Final = 60.0
_WHOLE_S: Final = 1800.0

Start = Callable[[Place], AbstractContextManager[int]]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Length:
    """How long a turn is, what of its beginning is cut off, how many there are.

    A topic that is drained holds `full` records, and is drained for `drain_s` at most.
    """

    turn_s: float
    warm_up_s: float
    turns: int
    full: int
    drain_s: float


LENGTHS: Final = {
    Effort.QUICK: Length(turn_s=4, warm_up_s=2, turns=1, full=200_000, drain_s=2),
    Effort.FULL: Length(turn_s=8, warm_up_s=4, turns=3, full=1_000_000, drain_s=4),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A contestant at 1,000 records/s: CPU is that of a record, `late_p99_ms` the lag of the producer.

    `precedence` is what the clients had: a machine may let them go before others, or not.
    """

    p50_ms: float
    p99_ms: float
    cpu_us: float
    records: int
    lost: int
    doubled: int
    late_p99_ms: float
    precedence: str

    @property
    def is_valid(self) -> bool:
        """Whether records were sent when they were due."""
        return self.late_p99_ms <= VALID_LATE_MS

    def figures(self) -> dict[str, float]:
        """What is measured anew in each turn."""
        return {name: value for name, value in asdict(self).items() if name != "precedence"}


class Bed:
    """A broker with new topics for each turn, and one that is full and read by all."""

    def __init__(self, broker: KafkaBroker, full: int) -> None:
        self._broker = broker
        self._numbers = count()
        broker.create_topic(_FULL)
        fill(broker.servers, _FULL, full)

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Two topics of one partition, gone afterwards: what they hold need not stay on the disk."""
        with self._topic("from") as source, self._topic("to") as sink:
            yield Place(self._broker.servers, source, sink)

    @contextmanager
    def full_place(self) -> Iterator[Place]:
        """The full topic, and another one that is gone afterwards."""
        with self._topic("to") as sink:
            yield Place(self._broker.servers, _FULL, sink)

    @contextmanager
    def _topic(self, name: str) -> Iterator[str]:
        topic = f"{name}-{next(self._numbers)}"
        self._broker.create_topic(topic)
        try:
            yield topic
        finally:
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
            Listener(place.servers, place.source if start is None else place.sink, prompt=True)
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
        precedence=sent.precedence,
    )


def drained(bed: Bed, start: Start, length: Length) -> float | None:
    """Records per second out of a full topic; None if one was left out."""
    with bed.full_place() as place, ExitStack() as opened:
        listener = opened.enter_context(Listener(place.servers, place.sink))
        opened.enter_context(start(place))
        if not listener.begun(_FIRST_S):
            return None
        arrived = listener.await_many(length.full, length.drain_s)
        return None if arrived.gaps else arrived.per_s


@dataclass(slots=True)
class Measured:
    """Turns and highest rates of each contestant, turns that were repeated, and why some have none."""

    turns: dict[str, list[Turn | None]] = field(default_factory=dict)
    repeated: dict[str, list[Turn | None]] = field(default_factory=dict)
    highest_per_s: dict[str, list[float | None]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def take_turn(self, name: str, measure: Callable[[], Turn | None], say: Say) -> None:
        """One that counts; it is repeated while it is not valid or empty, and not too often."""
        found = measure()
        for _ in range(REPEATS):
            if found is not None and found.is_valid:
                break
            late = "" if found is None else f": the producer was {found.late_p99_ms:.1f} ms late at p99"
            say(f"  {'nothing came' if found is None else 'not valid'}, so repeated{late}")
            self.repeated.setdefault(name, []).append(found)
            found = measure()
        self.turns[name].append(found)
        if found is None:
            say("  nothing came")
            return
        valid = "" if found.is_valid else f", not valid: producer {found.late_p99_ms:.1f} ms late at p99"
        say(f"  p50 {found.p50_ms:.2f} ms, p99 {found.p99_ms:.2f} ms{valid}")

    def take_highest(self, name: str, measure: Callable[[], float | None], say: Say) -> None:
        """The rate out of a full topic."""
        found = measure()
        self.highest_per_s[name].append(found)
        say("  not all came" if found is None else f"  {found:,.0f} records/s")

    @contextmanager
    def told(self, name: str, say: Say) -> Iterator[None]:
        """A contestant that is not Penstock may fail: that is told, and it takes part no longer."""
        try:
            yield
        except Exception as problem:
            if name.startswith(OWN):
                raise
            self.skipped[name] = in_a_line(problem)
            say(f"  it failed and takes part no longer: {self.skipped[name]}")


def in_a_line(problem: Exception) -> str:
    """The first line of what went wrong, which may be a whole stack of Java."""
    said = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {said[0] if said else ''}"[:200]


def contestants(only: Sequence[str], measured: Measured) -> dict[str, Start]:
    """Those that can take part, of some that were asked for if there are such; why others do not is noted."""
    starts: dict[str, Start] = {OWN: penstock_flow}
    try:
        spark = connector_session()
        starts[REAL_TIME] = partial(spark_real_time, spark)
        starts[MICRO] = partial(spark_micro_batches, spark)
    except JarsError as problem:
        bench_session(SLOTS)
        measured.skipped |= dict.fromkeys((REAL_TIME, MICRO), in_a_line(problem))
    for name, library in PEERS.items():
        if only and name not in only:
            continue
        if not only and not is_made(library):
            measured.skipped[name] = f"not installed; penstock bench kafka --only {name} does that"
            continue
        try:
            python_of(library)
            starts[name] = partial(peer, name)
        except PeerMissingError as problem:
            measured.skipped[name] = f"cannot be installed: {problem}"
    return {name: start for name, start in starts.items() if not only or name in (OWN, *only)}


def contest(effort: Effort, only: Sequence[str], say: Say) -> Result:
    """All turns, in this process."""
    length, measured = LENGTHS[effort], Measured()
    say("Spark and a broker start, and a topic is filled")
    starts = contestants(only, measured)
    highest: dict[str, Start] = {
        **starts,
        OWN_BATCHED: partial(penstock_flow, lifetime=BATCHED, headers=False),
    }
    measured.turns = {name: [] for name in (BARE, *starts)}
    measured.highest_per_s = {name: [] for name in highest}
    for name, why in measured.skipped.items():
        say(f"{name} is skipped: {why}")
    with KafkaBroker(silent_s=60) as broker:
        bed = Bed(broker, length.full)
        numbers, of = count(1), length.turns * (len(highest) + len(measured.turns))
        for number in range(length.turns):
            way = 1 if number % 2 == 0 else -1
            # The full topic first: it also warms up what is compiled while it runs.
            for name in [one for one in highest if one not in measured.skipped][::way]:
                say(f"{next(numbers)} of {of}: {name}, a full topic")
                with measured.told(name, say):
                    measured.take_highest(name, partial(drained, bed, highest[name], length), say)
            for name in [one for one in measured.turns if one not in measured.skipped][::way]:
                say(f"{next(numbers)} of {of}: {name}, {RATE_PER_S:,.0f} records/s")
                with measured.told(name, say):
                    measured.take_turn(name, partial(paced, bed, starts.get(name), length), say)
    return summarise(measured, only)


def summarise(measured: Measured, only: Sequence[str] = ()) -> Result:
    """Figures and checks from all turns; a contestant that was skipped has none, and fails its check."""
    p50_ms = {
        name: median([one.p50_ms for one in turns if one is not None])
        for name, turns in measured.turns.items()
    }
    batched = median([one for one in measured.highest_per_s.get(OWN_BATCHED, []) if one is not None])
    known = [one for turns in measured.turns.values() for one in turns if one is not None]
    figures = {
        "spark_connector_version": connector_version(),
        "clients_precedence": sorted({one.precedence for one in known}),
        **{f"{name}_skipped": why for name, why in measured.skipped.items()},
        "at_1000_records_per_s": {
            name: [None if one is None else one.figures() for one in turns]
            for name, turns in measured.turns.items()
            if turns
        },
        "repeated_since_not_valid": {
            name: [None if one is None else one.figures() for one in turns]
            for name, turns in measured.repeated.items()
        },
        "highest_records_per_s": {name: found for name, found in measured.highest_per_s.items() if found},
    }
    own = [*measured.turns[OWN], *measured.repeated.get(OWN, [])]
    whole = [one for one in own if one is not None]
    is_known = bool(own) and len(whole) == len(own)  # of a turn in which nothing came all is lost
    late_ms = max((one.late_p99_ms for one in known), default=None)
    against = [
        (REAL_TIME, Check("p50 / JVM-only real-time query", of_own(p50_ms, REAL_TIME), "<=", 1.5)),
        (MICRO, Check("p50 / micro-batches", of_own(p50_ms, MICRO), "<=", 0.1)),
    ]
    checks = [
        *(check for name, check in against if not only or name in only),
        Check("records/s of 100 bytes, batched", batched, ">=", ENOUGH_PER_S),
        Check("valid run: worst lag of the producer p99, ms", late_ms, "<=", VALID_LATE_MS),
        Check("records lost", sum(one.lost for one in whole) if is_known else None, "==", 0),
        Check("records duplicated", sum(one.doubled for one in whole) if is_known else None, "==", 0),
    ]
    return Result("kafka", figures, checks)


def of_own(p50_ms: Mapping[str, float | None], other: str) -> float | None:
    """How many times as long as another's Penstock's median is."""
    return ratio(p50_ms[OWN], p50_ms.get(other))


class _Answer(msgspec.Struct):
    bench: str
    figures: dict[str, Any]
    checks: list["_Checked"]


class _Checked(msgspec.Struct):
    name: str
    value: float | None
    op: Operator
    bar: float


def bench(effort: Effort, only: Sequence[str] = ()) -> Result:
    """Have it run by a process of its own; beside Penstock only some take part if they are named."""
    require("confluent_kafka", "kafka", "penstock bench kafka")
    command = [sys.executable, "-c", "from penstock.bench.kafka import answer; answer()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with OwnSession(command, environment=environment, directory=Path.cwd()) as own:
        told = own.ask(" ".join((effort.value, *only)), _WHOLE_S, noted=_on_stderr)
        said = msgspec.json.decode(told.text, type=_Answer)
    checks = [Check(one.name, one.value, one.op, one.bar) for one in said.checks]
    return Result(said.bench, said.figures, checks)


def answer() -> None:
    """What that process does: one contest for each line."""
    began_s = time.monotonic()

    def say(note: str) -> None:
        print(f"{NOTE}{time.monotonic() - began_s:4.0f} s  {note}", flush=True)

    for line in sys.stdin:
        effort, *only = line.split()
        print(ANSWER + contest(Effort(effort), only, say).to_json(), flush=True)


def _on_stderr(note: str) -> None:
    print(f"bench kafka: {note}", file=sys.stderr, flush=True)
