"""How long nothing comes out at a boundary between batches, plain or with a resized pool; and at Spark's.

Spark's own is a plain query of the same shape over its own shuffle, in a process of its own.
"""

import tempfile
import time
from pathlib import Path

import numpy
from numpy.typing import NDArray

import penstock
from penstock.bench.baselines import Rows, bench_session
from penstock.bench.harness import Check, Effort, Result, median, ratio
from penstock.bench.latency import same
from penstock.bench.sparks_own import SparksOwn, Turn
from penstock.bench.telling import turns
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import arrivals

RATE_PER_S = 1000.0
POOL, LARGER = 4, 6
SLOTS = LARGER + 2
SPARK_BATCH_S = 5


def gap_ms(arrived_ns: NDArray[numpy.int64], begin_ns: int, end_ns: int) -> float | None:
    """The longest time without an arrival among those in a span; None without two of them."""
    inside = numpy.sort(arrived_ns[(arrived_ns >= begin_ns) & (arrived_ns < end_ns)])
    return float(numpy.diff(inside).max()) * 1e-6 if len(inside) > 1 else None


def own(boundaries: int, pause_s: float) -> tuple[dict[str, list[float | None]], int, int]:
    """Gaps at Penstock's boundaries, items lost, items duplicated."""
    spans: dict[str, list[tuple[int, int]]] = {"plain": [], "resized": []}
    with Ledger() as ledger:
        flow = penstock.Flow("boundary")
        items = flow.source(penstock.paced(stamped, RATE_PER_S), name="items")
        pool = penstock.elastic(1, LARGER, initial=POOL, pool=POOL)
        items.map(same, name="same", parallelism=pool).sink(ledger, name="ledger")
        job = penstock.run(flow)
        time.sleep(2 * pause_s)
        for number in range(boundaries):
            for name in spans:
                begin_ns = time.monotonic_ns()
                if name == "plain":
                    job.boundary()
                else:
                    job.set_pool("same", LARGER if number % 2 == 0 else POOL)
                time.sleep(pause_s)
                spans[name].append((begin_ns, time.monotonic_ns()))
        job.stop()
        entries = arrivals(ledger)
        expected = job.metrics().tasks["items"].items_in
    gaps = {name: [gap_ms(entries.arrived_ns, *span) for span in taken] for name, taken in spans.items()}
    return gaps, entries.lost({0: expected}), entries.duplicated()


def sparks_turn(boundaries: int) -> Turn:
    """The same shape in plain real-time mode, with that many boundaries."""
    seconds = SPARK_BATCH_S * (boundaries + 0.6)
    return Turn(RATE_PER_S, seconds, f"{SPARK_BATCH_S} seconds", hops=2, width=POOL)


def sparks_gaps_ms(rows: Rows, boundaries: int) -> list[float]:
    """The longest gaps at the sink, one for each boundary."""
    longest = numpy.sort(numpy.diff(numpy.sort(rows.arrived_ns)))[::-1][:boundaries]
    return [float(gap) * 1e-6 for gap in longest]


def bench(effort: Effort) -> Result:
    """Penstock and plain Spark in turn."""
    count, boundaries, pause_s = (1, 3, 2.0) if effort is Effort.QUICK else (3, 4, 3.0)
    bench_session(SLOTS)
    gaps: dict[str, list[float | None]] = {"plain": [], "resized": [], "spark": []}
    lost = duplicated = 0
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as empty, SparksOwn(Path(empty)) as spark:
        for _ in turns(count):
            taken, missing, twice = own(boundaries, pause_s)
            for name, found in taken.items():
                gaps[name] += found
            lost, duplicated = lost + missing, duplicated + twice
            gaps["spark"] += sparks_gaps_ms(spark.take(sparks_turn(boundaries)), boundaries)
    return summarise(gaps, lost, duplicated)


def summarise(gaps: dict[str, list[float | None]], lost: int, duplicated: int) -> Result:
    """No bar for the gap: it stands next to Spark's own."""
    middle = {name: median([gap for gap in taken if gap is not None]) for name, taken in gaps.items()}
    figures = {
        "gap_ms": middle["plain"],
        "gap_with_pool_resized_ms": middle["resized"],
        "sparks_own_gap_ms": middle["spark"],
        "gap_over_sparks_own": ratio(middle["plain"], middle["spark"]),
        "all_gaps_ms": gaps,
    }
    checks = [Check("items lost", lost, "==", 0), Check("items duplicated", duplicated, "==", 0)]
    return Result("boundary", figures, checks)
