"""What measuring costs: the same flow with measurement on and off, in turn, while it runs.

On is the default: a tenth of the items is timed at every task, and workers report once a second. Off is
nothing timed and no reports. Turns alternate off, on, on, off, ... so that a drift of the machine meets both
alike, and each turn is compared with its neighbor; the bars are held against the median of these pairs. CPU
is that of the driver, Spark and all workers, without the compilers of the JVM: how long they are busy after a
start has nothing to do with items. Latency is that of all items, from due time to sink, by the sink's ledger.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median
from penstock.bench.latency import same
from penstock.bench.windows import CpuSpan, cpu_span
from penstock.spark.job import Job
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import Entries, arrivals

SLOTS = 4
ON_SAMPLING = 0.1
ON_EVERY = "1 s"
OFF_EVERY = "12 h"
SETTLE_S = 0.5
MOST_CPU = 0.03
MOST_LATENCY_MS = 0.2


@dataclass(frozen=True, slots=True)
class Load:
    """How items come: their rate, and how long envelopes collect them."""

    rate_per_s: float
    lifetime: str


LOADS = {"at_once": Load(2_000.0, "0 ms"), "batched": Load(20_000.0, "20 ms")}


@dataclass(frozen=True, slots=True)
class Length:
    """How many pairs of turns, how long each is, and how long a flow runs before; Java warms up first."""

    pairs: int
    window_s: float
    warm_up_s: float
    first_warm_up_s: float


LENGTHS = {
    Effort.QUICK: Length(pairs=3, window_s=2.0, warm_up_s=3, first_warm_up_s=10),
    Effort.FULL: Length(pairs=40, window_s=2.0, warm_up_s=10, first_warm_up_s=30),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A time in which measurement was on or off."""

    measuring: bool
    span: CpuSpan


@dataclass(frozen=True, slots=True)
class Pair:
    """An item with measurement, next to one without."""

    cpu_us_off: float
    cpu_us_on: float
    latency_ms_off: float
    latency_ms_on: float

    @property
    def more_cpu(self) -> float:
        """As a share of the CPU without."""
        return self.cpu_us_on / self.cpu_us_off - 1

    @property
    def more_latency_ms(self) -> float:
        return self.latency_ms_on - self.latency_ms_off


def bench(effort: Effort) -> Result:
    """One job for each load; measurement is switched while it runs."""
    length = LENGTHS[effort]
    bench_session(SLOTS)
    warm_ups_s = (length.first_warm_up_s, *[length.warm_up_s] * (len(LOADS) - 1))
    return summarise(
        {
            name: run(load, length, warm_up_s)
            for (name, load), warm_up_s in zip(LOADS.items(), warm_ups_s, strict=True)
        }
    )


def run(load: Load, length: Length, warm_up_s: float) -> list[Pair]:
    """source -> task -> sink under this load."""
    with Ledger() as ledger:
        flow = penstock.Flow("overhead")
        items = flow.source(penstock.paced(stamped, load.rate_per_s), name="items")
        task = items.batched(load.lifetime).map(same, name="same")
        task.batched(load.lifetime).sink(ledger, name="ledger")
        job = penstock.run(flow, sampling=ON_SAMPLING, measure_every=ON_EVERY)
        time.sleep(warm_up_s)
        turns = [
            take_turn(job, length.window_s, measuring=number % 4 in (1, 2))
            for number in range(2 * length.pairs)
        ]
        job.stop()
        return paired(turns, arrivals(ledger))


def take_turn(job: Job, window_s: float, *, measuring: bool) -> Turn:
    """Switch, let it settle, look."""
    job.set_sampling(ON_SAMPLING if measuring else 0.0)
    job.set_measure_every(ON_EVERY if measuring else OFF_EVERY)
    time.sleep(SETTLE_S)
    return Turn(measuring, cpu_span(window_s))


def paired(turns: Sequence[Turn], entries: Entries) -> list[Pair]:
    """Two turns, one of each kind, make a pair; a pair in which nothing arrived is none."""
    pairs = []
    for first, second in zip(turns[::2], turns[1::2], strict=True):
        spans = (second.span, first.span) if first.measuring else (first.span, second.span)
        seen = [
            entries.where((entries.arrived_ns >= span.begin_ns) & (entries.arrived_ns < span.end_ns))
            for span in spans
        ]
        if all(len(each) for each in seen):
            cpu_us = [span.cpu_s * 1e6 / len(each) for span, each in zip(spans, seen, strict=True)]
            latency_ms = [float(each.latency_ms().mean()) for each in seen]
            pairs.append(Pair(*cpu_us, *latency_ms))
    return pairs


def summarise(pairs: dict[str, list[Pair]]) -> Result:
    """Medians of the pairs, and how far the middle half of them spreads."""
    figures: dict[str, Any] = {}
    checks = []
    for load, taken in pairs.items():
        more_cpu = [pair.more_cpu for pair in taken]
        more_ms = [pair.more_latency_ms for pair in taken]
        figures[load] = {
            "rate_per_s": LOADS[load].rate_per_s,
            "batch_lifetime": LOADS[load].lifetime,
            "cpu_us_per_item_off": median([pair.cpu_us_off for pair in taken]),
            "cpu_us_per_item_on": median([pair.cpu_us_on for pair in taken]),
            "latency_ms_off": median([pair.latency_ms_off for pair in taken]),
            "latency_ms_on": median([pair.latency_ms_on for pair in taken]),
            "pairs_more_cpu": more_cpu,
            "pairs_more_latency_ms": more_ms,
            "middle_half_more_cpu": middle_half(more_cpu),
            "middle_half_more_latency_ms": middle_half(more_ms),
        }
        checks += [
            Check(f"{load}: more CPU per item, share", median(more_cpu), "<=", MOST_CPU),
            Check(f"{load}: more latency, ms", median(more_ms), "<=", MOST_LATENCY_MS),
        ]
    return Result("overhead", figures, checks)


def middle_half(values: Sequence[float]) -> list[float] | None:
    """First and third quartile; None for too few values."""
    if len(values) < 4:
        return None
    ordered = sorted(values)
    return [ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]]
