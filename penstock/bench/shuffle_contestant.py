"""What a contestant of `penstock bench shuffle` runs: a process with a Spark of its own, over one shuffle.

It is asked for turns on its standard input, by name and with how long they may take, and answers in JSON.
"""

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import SparkSession

import penstock
from penstock.bench import boundary, latency, throughput
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Effort
from penstock.bench.in_order import in_order
from penstock.bench.own_session import ANSWER
from penstock.bench.sparks_own import Turn, ran
from penstock.bench.windows import arrived, window
from penstock.flow.spark_conf import SHUFFLE
from penstock.processes import steady_cpu_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.spark.job import Job

POOL = 64
WIDTH = 8
SLOTS = POOL + 2
CPU_RATE_PER_S = 3000.0
IDLE_RATE_PER_S = 10.0
FIRST_ITEM_S = 60.0
LOOK_S = 0.1
TASK_THREADS = "Executor task launch worker"
OWN_THREADS = "penstock-"


class Asked(msgspec.Struct, frozen=True):
    """A turn, and how long it may take."""

    turn: str
    effort: Effort


class Cost(msgspec.Struct, frozen=True):
    """CPU of the JVM and items of a window, and the items that were lost, doubled or reordered in all."""

    cpu_us_per_item: float | None
    items_per_s: float
    wrong: int


class Hop(msgspec.Struct, frozen=True):
    """Latency of a turn; None if nothing came. The lag is the source's, None if nobody knows."""

    mean_ms: float | None
    lag_p99_ms: float | None = None
    wrong: int = 0


class Gaps(msgspec.Struct, frozen=True):
    """The longest silences at boundaries."""

    gap_ms: list[float | None]
    wrong: int = 0


class Pool(msgspec.Struct, frozen=True):
    """Cores that a flow with an idle pool takes, and how many worker processes that pool has."""

    cores: float
    processes: int


class Contestant:
    """Flows over one shuffle."""

    def __init__(self, spark: SparkSession) -> None:
        assert spark._jvm is not None
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._pid = int(self._jvm.java.lang.ProcessHandle.current().pid())

    def cpu(self, effort: Effort) -> Cost:
        """CPU of the JVM for an item that travels at once over two hops."""
        with in_order() as sink:
            with _running(throughput.flow(CPU_RATE_PER_S, sink), effort) as job:
                items, cpu_s, began_s = arrived(job), steady_cpu_of([self._pid]), time.monotonic()
                time.sleep(_lengths(effort)[1])
                seconds = time.monotonic() - began_s
                cpu_s, items = steady_cpu_of([self._pid]) - cpu_s, arrived(job) - items
            wrong = sink.wrong(job, "items", "drop")
        return Cost(cpu_s * 1e6 / items if items else None, items / seconds, wrong)

    def throughput(self, effort: Effort) -> Cost:
        """Items that pass one trivial task at once, as many as it can take."""
        with in_order() as sink:
            with _running(throughput.flow(throughput.OFFERED_PER_S, sink), effort) as job:
                seen = window(job, _lengths(effort)[1])
            wrong = sink.wrong(job, "items", "drop")
        return Cost(seen.cpu_us_per_item, seen.items_per_s, wrong)

    def hop(self, effort: Effort) -> Hop:
        """One hop with a Python stage behind it."""
        length = latency.LENGTHS[effort]
        found = latency.hops(1, length.turn_s, length.warm_up_s)
        if found is None:
            return Hop(None)
        wrong = found.lost + found.duplicated + found.reordered
        return Hop(found.mean_ms, found.source_lag_p99_ms, wrong)

    def jvm_hop(self, effort: Effort) -> Hop:
        """One hop between two operators in the JVM."""
        length = latency.LENGTHS[effort]
        rows = ran(self._spark, Turn(latency.RATE_PER_S, length.turn_s))
        found = rows.after(length.warm_up_s).summary()
        return Hop(None if found is None else found.mean_ms)

    def threads(self, effort: Effort) -> int:
        """Threads of the JVM that a flow 2 -> 8 -> 8 -> 8 adds, but for those of tasks and of Penstock."""
        before = self._threads()
        with _running(_wide(), effort):
            # By their numbers: threads of the flow before may end meanwhile.
            new = [name for number, name in self._threads().items() if number not in before]
        return sum(not name.startswith((TASK_THREADS, OWN_THREADS)) for name in new)

    def _threads(self) -> dict[int, str]:
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet()
        return {thread.getId(): thread.getName() for thread in threads}

    def small_pool(self, effort: Effort) -> Pool:
        """An idle flow with a pool of one."""
        return _idle(1, effort)

    def large_pool(self, effort: Effort) -> Pool:
        """The same with a pool of 64, of which one is active."""
        return _idle(POOL, effort)

    def boundary(self, effort: Effort) -> Gaps:
        """Plain boundaries of a flow."""
        gaps, lost, duplicated = boundary.own(*_boundaries(effort))
        return Gaps(gaps["plain"], lost + duplicated)

    def sparks_boundary(self, effort: Effort) -> Gaps:
        """Those of the same shape in plain real-time mode."""
        boundaries, _ = _boundaries(effort)
        rows = ran(self._spark, boundary.sparks_turn(boundaries))
        return Gaps([*boundary.sparks_gaps_ms(rows, boundaries)])


def _lengths(effort: Effort) -> tuple[float, float]:
    """How long a flow settles, and how long it is looked at."""
    return (3.0, 4.0) if effort is Effort.QUICK else (10.0, 20.0)


def _boundaries(effort: Effort) -> tuple[int, float]:
    return (2, 1.5) if effort is Effort.QUICK else (4, 3.0)


@contextmanager
def _running(flow: penstock.Flow, effort: Effort) -> "Iterator[Job]":
    """Once items come out and it has settled, until it has been looked at."""
    job = penstock.run(flow)
    try:
        deadline_s = time.monotonic() + FIRST_ITEM_S
        while not arrived(job) and time.monotonic() < deadline_s:
            time.sleep(LOOK_S)
        time.sleep(_lengths(effort)[0])
        yield job
    finally:
        job.stop()


def _wide() -> penstock.Flow:
    flow = penstock.Flow("wide")
    items = flow.source(
        penstock.paced(throughput.made, IDLE_RATE_PER_S, partitions=2),
        name="items",
    )
    for task in ("first", "second"):
        items = items.map(throughput.same, name=task, parallelism=WIDTH)
    items.sink(throughput.drop, name="drop", parallelism=WIDTH)
    return flow


def _idle(pool: int, effort: Effort) -> Pool:
    flow = penstock.Flow("idle")
    items = flow.source(penstock.paced(throughput.made, IDLE_RATE_PER_S), name="items")
    parallelism = penstock.elastic(1, POOL, initial=1, pool=pool)
    items.map(throughput.same, name="same", parallelism=parallelism).sink(throughput.drop, name="drop")
    with _running(flow, effort) as job:
        seen = window(job, _lengths(effort)[1])
        return Pool(seen.cores, len(job.metrics().tasks["same"].processes))


def main(shuffle: str) -> None:
    """Answer until nobody asks."""
    contestant = Contestant(bench_session(SLOTS, {SHUFFLE: shuffle}))
    for line in sys.stdin:
        asked = msgspec.json.decode(line, type=Asked)
        turn: Callable[[Effort], msgspec.Struct | int] = getattr(contestant, asked.turn)
        print(ANSWER + msgspec.json.encode(turn(asked.effort)).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
