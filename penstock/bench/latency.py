"""One Python hop against a JVM-only hop, Spark's own way into Python, and micro-batches; and three hops.

A Python hop is a shuffle and the Python stage behind it: one hop is source -> sink, three hops are
source -> task -> task -> sink. The words can also be read as source -> task -> forward sink, one shuffle with
two Python stages behind it in the same Spark task; both readings are held against the bar. The JVM-only hop
is Spark's own shuffle with source and sink in the JVM, in a process of its own with the same settings; over
our shuffle, in this session, it is shown beside. 1,000 items/s of 32 bytes, envelopes shipped at once. No
boundary between batches lies in the window of a contestant; what they cost is the bench `boundary`.
"""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import penstock
from penstock.bench.baselines import arrow_hop, bench_session, micro_batch, real_time
from penstock.bench.harness import Check, Effort, Result, ratio
from penstock.bench.latency_summary import LatencySummary, middle_mean_ms
from penstock.bench.sparks_own import SparksOwn, Turn, ran
from penstock.bench.telling import turns
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import arrivals

RATE_PER_S = 1000.0
SLOTS = 8
ARROW_BATCH_S = 5
# A late source measures the machine, not the flow: such a run says nothing, whatever its ratios.
# The limit is a tenth of the tightest constraint of PrimeTest, 20 ms.
VALID_LAG_MS = 2.0
ARROW_BATCH = f"{ARROW_BATCH_S} seconds"


@dataclass(frozen=True, slots=True)
class Length:
    """How long a turn of a contestant takes, how much of its beginning is cut off, how many turns it gets."""

    turn_s: float
    warm_up_s: float
    turns: int
    first_s: float


LENGTHS = {
    Effort.QUICK: Length(turn_s=4.5, warm_up_s=2, turns=1, first_s=3),
    Effort.FULL: Length(turn_s=20, warm_up_s=8, turns=3, first_s=30),
}


def same(item: Any) -> Any:
    """The trivial task."""
    return item


def hops(count: int, seconds: float, warm_up_s: float) -> LatencySummary | None:
    """Items through `count` shuffles, with a Python stage behind each."""
    with Ledger() as ledger:
        flow = penstock.Flow("hops")
        stream = flow.source(penstock.paced(stamped, RATE_PER_S, seconds=seconds), name="numbers")
        for hop in range(1, count):
            stream = stream.map(same, name=f"hop{hop}")
        stream.sink(ledger, name="ledger")
        return measured(flow, ledger, seconds, warm_up_s)


def task_and_sink(seconds: float, warm_up_s: float) -> LatencySummary | None:
    """Items through one shuffle to a Python task, and on to a Python sink beside it."""
    with Ledger() as ledger:
        flow = penstock.Flow("task_and_sink")
        stream = flow.source(penstock.paced(stamped, RATE_PER_S, seconds=seconds), name="numbers")
        stream.map(same, name="task").forward().sink(ledger, name="ledger")
        return measured(flow, ledger, seconds, warm_up_s)


def measured(flow: penstock.Flow, ledger: Ledger, seconds: float, warm_up_s: float) -> LatencySummary | None:
    """Run a flow of single replicas to its end; the latency after the warm-up, and what is wrong of all."""
    penstock.run(flow).await_termination(seconds + 60)
    entries = arrivals(ledger)
    if not len(entries):
        return None
    begin_ns = int(entries.arrived_ns.min() + warm_up_s * 1e9)
    kept = entries.due_between(begin_ns, int(entries.due_ns.max()) + 1)
    lost = entries.lost({0: round(RATE_PER_S * seconds)})
    lag_ms = kept.mark.astype(float) * 1e-6
    return LatencySummary.of(
        kept.latency_ms(),
        lost=lost,
        duplicated=entries.duplicated(),
        reordered=entries.reordered(),
        source_lag_ms=lag_ms,
    )


def bench(effort: Effort) -> Result:
    """Turn by turn, so that whatever else the machine does meets all contestants."""
    length = LENGTHS[effort]
    spark = bench_session(SLOTS)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as empty, SparksOwn(Path(empty)) as sparks:
        hops(1, length.first_s, 0)
        sparks.take(Turn(RATE_PER_S, length.first_s))
        ran(spark, Turn(RATE_PER_S, length.first_s))
        taken = [one_turn(spark, sparks, length) for _ in turns(length.turns)]
    return summarise({name: [turn[name] for turn in taken] for name in taken[0]})


def one_turn(spark: SparkSession, sparks: SparksOwn, length: Length) -> dict[str, LatencySummary | None]:
    """Everybody once."""
    whole_s, cut_s = length.turn_s, length.warm_up_s
    hop = Turn(RATE_PER_S, whole_s)
    return {
        "penstock_1_hop": hops(1, whole_s, cut_s),
        "jvm_hop": sparks.take(hop).after(cut_s).summary(),
        "jvm_hop_over_ours": ran(spark, hop).after(cut_s).summary(),
        "penstock_3_hops": hops(3, whole_s, cut_s),
        "penstock_task_and_sink": task_and_sink(whole_s, cut_s),
        "micro_batch": micro_batch(spark, arrow_hop(1), RATE_PER_S, whole_s).after(cut_s).summary(),
        "map_in_arrow": real_time(spark, arrow_hop(1), RATE_PER_S, ARROW_BATCH_S + 1, ARROW_BATCH)
        .after(0)
        .summary(),
    }


def summarise(turns: dict[str, list[LatencySummary | None]]) -> Result:
    """Figures and checks from all turns."""
    mean = {name: middle_mean_ms(results) for name, results in turns.items()}
    figures: dict[str, Any] = {f"{name}_mean_ms": value for name, value in mean.items()}
    figures["map_in_arrow_batch"] = ARROW_BATCH
    figures["turns"] = {
        name: [None if turn is None else asdict(turn) for turn in results] for name, results in turns.items()
    }
    own = [turn for name in turns if name.startswith("penstock") for turn in turns[name] if turn is not None]
    lags = [turn.source_lag_p99_ms for turn in own if turn.source_lag_p99_ms is not None]
    checks = [
        Check(
            "task and sink / JVM-only hop", ratio(mean["penstock_task_and_sink"], mean["jvm_hop"]), "<=", 2.0
        ),
        Check("one hop / JVM-only hop", ratio(mean["penstock_1_hop"], mean["jvm_hop"]), "<=", 2.0),
        Check("one hop / micro-batch", ratio(mean["penstock_1_hop"], mean["micro_batch"]), "<=", 1 / 50),
        Check("three hops / one hop", ratio(mean["penstock_3_hops"], mean["penstock_1_hop"]), "<=", 3.5),
        Check("valid run: worst source lag p99, ms", max(lags, default=None), "<=", VALID_LAG_MS),
        Check("items lost", sum(turn.lost for turn in own), "==", 0),
        Check("items duplicated", sum(turn.duplicated for turn in own), "==", 0),
        Check("items reordered", sum(turn.reordered for turn in own), "==", 0),
    ]
    return Result("latency", figures, checks)
