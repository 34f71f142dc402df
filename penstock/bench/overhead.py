"""What measuring costs: a flow with measurement on and off, in turn, beside one that is never measured.

On is the default: a tenth of the items is timed at every task, and workers report once a second. Off is
nothing timed and no reports. Turns alternate off, on, on, off, ..., and each is compared with its neighbor.

Where others share the machine, the speed of the cores changes by a tenth from one second to the next. The
second flow, the same and never measured, meets the same moments: CPU is counted in units of its workers' CPU.

    more CPU = (change of the flow's workers + change of driver and JVM)
               / (workers + half of driver and JVM)

because the two flows share the driver and the JVM. The JVM's compilers are left out: how long they are busy
after a start has nothing to do with items. Latency is that of all items, from due time to sink, by the sink's
ledger.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median
from penstock.bench.latency import same
from penstock.processes import steady_cpu_of, tree
from penstock.spark.job import Job
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import Entries, arrivals

SLOTS = 8
ON_SAMPLING = 0.1
ON_EVERY = "1 s"
OFF_EVERY = "12 h"
SETTLE_S = 0.5
START_S = 60.0
MOST_CPU = 0.03
MOST_LATENCY_MS = 0.2


@dataclass(frozen=True, slots=True)
class Load:
    """How items come to each of the two flows: their rate, and how long envelopes collect them."""

    rate_per_s: float
    lifetime: str


LOADS = {"at_once": Load(800.0, "0 ms"), "batched": Load(20_000.0, "20 ms")}


@dataclass(frozen=True, slots=True)
class Length:
    """How many pairs of turns, how long each is, and how long a flow runs before; Java warms up first."""

    pairs: int
    window_s: float
    warm_up_s: float
    first_warm_up_s: float


LENGTHS = {
    Effort.QUICK: Length(pairs=3, window_s=2.0, warm_up_s=3, first_warm_up_s=10),
    Effort.FULL: Length(pairs=60, window_s=2.0, warm_up_s=10, first_warm_up_s=30),
}


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of CPU: of the flow's workers, of the other flow's, and of what they share."""

    workers_s: float
    reference_s: float
    shared_s: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A time in which measurement was on or off."""

    measuring: bool
    begin_ns: int
    end_ns: int
    cpu: Cpu


@dataclass(frozen=True, slots=True)
class Pair:
    """A turn with measurement, next to one without."""

    off: Cpu
    on: Cpu
    latency_ms_off: float
    latency_ms_on: float

    @property
    def more_cpu(self) -> float:
        """As a share of the CPU without."""
        workers, shared = _in_units(self.off)
        more = sum(_in_units(self.on)) - (workers + shared)
        return more / (workers + shared / 2)

    @property
    def more_latency_ms(self) -> float:
        return self.latency_ms_on - self.latency_ms_off


def _in_units(cpu: Cpu) -> tuple[float, float]:
    return cpu.workers_s / cpu.reference_s, cpu.shared_s / cpu.reference_s


@dataclass(frozen=True, slots=True)
class Processes:
    """Who is who among the processes."""

    workers: frozenset[int]
    reference: frozenset[int]
    shared: frozenset[int]

    def cpu_s(self) -> tuple[float, float, float]:
        """Up to now."""
        return steady_cpu_of(self.workers), steady_cpu_of(self.reference), steady_cpu_of(self.shared)


def bench(effort: Effort) -> Result:
    """Two jobs for each load; measurement of one is switched while it runs."""
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
    """Both flows under this load."""
    shared = _processes()
    with Ledger() as ledger, Ledger() as other:
        with _running(load, other, measured=False):
            reference = _processes() - shared
            with _running(load, ledger, measured=True) as job:
                who = Processes(_processes() - shared - reference, reference, shared)
                time.sleep(warm_up_s)
                turns = [
                    take_turn(job, who, length.window_s, measuring=number % 4 in (1, 2))
                    for number in range(2 * length.pairs)
                ]
        return paired(turns, arrivals(ledger))


@contextmanager
def _running(load: Load, ledger: Ledger, *, measured: bool) -> Iterator[Job]:
    """source -> task -> sink, with all its processes there."""
    flow = penstock.Flow("measured" if measured else "reference")
    items = flow.source(penstock.paced(stamped, load.rate_per_s), name="items")
    task = items.batched(load.lifetime).map(same, name="same")
    task.batched(load.lifetime).sink(ledger, name="ledger")
    on = (ON_SAMPLING, ON_EVERY) if measured else (0.0, OFF_EVERY)
    job = penstock.run(flow, sampling=on[0], measure_every=on[1])
    try:
        _await_items(ledger)
        yield job
    finally:
        job.stop()


def _await_items(ledger: Ledger) -> None:
    """Once an item has come to the sink, all processes of its flow are there."""
    give_up_s = time.monotonic() + START_S
    while not any(path.stat().st_size for path in ledger.files()):
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"bench overhead: no item came to the sink within {START_S:.0f} s")
        time.sleep(0.1)


def _processes() -> frozenset[int]:
    return frozenset(tree(os.getpid()))


def take_turn(job: Job, who: Processes, window_s: float, *, measuring: bool) -> Turn:
    """Switch, let it settle, look."""
    job.set_sampling(ON_SAMPLING if measuring else 0.0)
    job.set_measure_every(ON_EVERY if measuring else OFF_EVERY)
    time.sleep(SETTLE_S)
    begin_ns, before_s = time.monotonic_ns(), who.cpu_s()
    time.sleep(window_s)
    end_ns, after_s = time.monotonic_ns(), who.cpu_s()
    took = (after - before for before, after in zip(before_s, after_s, strict=True))
    return Turn(measuring, begin_ns, end_ns, Cpu(*took))


def paired(turns: Sequence[Turn], entries: Entries) -> list[Pair]:
    """Two turns, one of each kind, make a pair; a pair in which nothing arrived is none."""
    pairs = []
    for first, second in zip(turns[::2], turns[1::2], strict=True):
        off, on = (second, first) if first.measuring else (first, second)
        seen = [
            entries.where((entries.arrived_ns >= turn.begin_ns) & (entries.arrived_ns < turn.end_ns))
            for turn in (off, on)
        ]
        if all(len(each) for each in seen):
            pairs.append(Pair(off.cpu, on.cpu, *(float(each.latency_ms().mean()) for each in seen)))
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
            "cpu_s_off": _median_cpu([pair.off for pair in taken]),
            "cpu_s_on": _median_cpu([pair.on for pair in taken]),
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


def _median_cpu(turns: Sequence[Cpu]) -> dict[str, float | None]:
    return {part: median([getattr(cpu, part) for cpu in turns]) for part in Cpu.__slots__}


def middle_half(values: Sequence[float]) -> list[float] | None:
    """First and third quartile; None for too few values."""
    if len(values) < 4:
        return None
    ordered = sorted(values)
    return [ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]]
