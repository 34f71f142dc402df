"""Four tasks in a row, joined by forward streams: the policy chains light ones, not heavy ones."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.apps.rate_limited import RateLimited
from penstock.bench.baselines import bench_session
from penstock.bench.control_batching import unchanged
from penstock.bench.control_run import ControlledRun, controlled_run
from penstock.bench.control_settings import control_plan
from penstock.bench.harness import Check, Effort, median, ratio
from penstock.bench.windows import CpuSpan, cpu_span
from penstock.policy.measured import largest_utilization
from penstock.spark.job import Job
from penstock.stats.snapshot import Snapshot
from penstock.testing import Ledger, stamped
from penstock.testing.ledger import Stamped

TASKS = ("decode", "merge", "overlay", "encode")
RATE_PER_S = 2_000.0
PACKET_BYTES, PICTURE_BYTES = 1_024, 16_384
LIFETIME, ENVELOPE_BYTES = "1 ms", 1 << 20
HEAVY_RATE_PER_S, HEAVY_ITEMS_PER_S = 150.0, 400.0
BOUND = "50 ms"
SETTLE_S = 20.0
SLOTS = 8
UTILIZATION_MAX = 0.9


@dataclass(frozen=True, slots=True)
class Turn:
    """A run and the time in which it was looked at."""

    one: ControlledRun
    settled: CpuSpan

    @property
    def mean_ms(self) -> float | None:
        return self.one.mean_ms(*self.one.seconds_of(self.settled))

    @property
    def cpu_us_per_item(self) -> float | None:
        return self.one.cpu_us_per_item(self.settled)

    @property
    def longest_chain(self) -> int:
        """The number of tasks in the longest chain at the end."""
        return max(len(chain) for chain in self.one.cycles[-1].snapshot.chains)


def packet(partition: int, index: int, seed: int, due_ns: int) -> Stamped:
    """A compressed picture."""
    return _resized(stamped(partition, index, seed, due_ns), PACKET_BYTES)


def decode(item: Stamped) -> Stamped:
    """Pictures are larger than what comes and goes: handing them over is what costs."""
    return _resized(item, PICTURE_BYTES)


def encode(item: Stamped) -> Stamped:
    """Small again."""
    return _resized(item, PACKET_BYTES)


def _resized(item: Stamped, size: int) -> Stamped:
    partition, index, due_ns, mark, payload = item
    assert isinstance(payload, bytes)
    return partition, index, due_ns, mark, payload[:size].ljust(size, b"\0")


def chaining(effort: Effort) -> dict[str, list[Turn]]:
    """Light tasks unchained and chained by the policy, in turn; then heavy ones that begin chained."""
    turns, window_s = (1, 8.0) if effort is Effort.QUICK else (2, 12.0)
    bench_session(SLOTS)
    taken: dict[str, list[Turn]] = {"unchained": [], "chained": [], "heavy": []}
    for _ in range(turns):
        taken["unchained"].append(light(window_s, "nephele.chaining=off"))
        taken["chained"].append(light(window_s))
    taken["heavy"].append(heavy(window_s))
    return taken


def light(window_s: float, *more: str) -> Turn:
    """Tasks that cost next to nothing."""
    work = dict(zip(TASKS, (decode, unchanged, unchanged, encode), strict=True))
    return _turn(RATE_PER_S, work, window_s, lambda _: None, *more)


def heavy(window_s: float) -> Turn:
    """Tasks that are busy for three eighths of the time each, all in one process at the beginning."""
    work = dict.fromkeys(TASKS, RateLimited(unchanged, HEAVY_ITEMS_PER_S))
    return _turn(HEAVY_RATE_PER_S, work, window_s, lambda job: job.set_chains([list(TASKS)]))


def _turn(rate_per_s: float, work: Mapping[str, Any], window_s: float, begin: Any, *more: str) -> Turn:
    spans: list[CpuSpan] = []

    def watch(job: Job) -> None:
        begin(job)
        time.sleep(SETTLE_S)
        spans.append(cpu_span(window_s))

    with Ledger() as ledger:
        flow = penstock.Flow("pipeline")
        packets = flow.source(penstock.paced(packet, rate_per_s), name="packets")
        stream = packets.batched(LIFETIME, bytes=ENVELOPE_BYTES).map(work[TASKS[0]], name=TASKS[0])
        for name in TASKS[1:]:
            stream = stream.forward().batched(LIFETIME, bytes=ENVELOPE_BYTES).map(work[name], name=name)
        stream.batched(LIFETIME, bytes=ENVELOPE_BYTES).sink(ledger, name="broadcast")
        flow.constrain(BOUND, start=f"packets->{TASKS[0]}", end=f"{TASKS[-1]}->broadcast")
        one = controlled_run(flow, ledger, control_plan("nephele", *more), watch)
    return Turn(one, *spans)


def heaviest_chain(snapshot: Snapshot) -> float:
    """The load of the busiest process: the largest utilizations of its tasks added up."""
    return max(
        sum(largest_utilization(snapshot.tasks[name]) or 0.0 for name in chain) for chain in snapshot.chains
    )


def summarise(turns: dict[str, list[Turn]]) -> tuple[dict[str, Any], list[Check]]:
    """Medians of the turns."""
    means_ms = {name: median([t.mean_ms for t in taken if t.mean_ms]) for name, taken in turns.items()}
    cost = {
        name: median([t.cpu_us_per_item for t in taken if t.cpu_us_per_item]) for name, taken in turns.items()
    }
    last = turns["heavy"][-1].one.cycles[-1].snapshot
    all_turns = [turn for taken in turns.values() for turn in taken]
    harmed = sum(turn.one.harm()["lost"] + turn.one.harm()["duplicated"] for turn in all_turns)
    figures = {
        "mean_ms": means_ms,
        "cpu_us_per_item": cost,
        "turns_mean_ms": {name: [turn.mean_ms for turn in taken] for name, taken in turns.items()},
        "turns_cpu_us_per_item": {n: [turn.cpu_us_per_item for turn in t] for n, t in turns.items()},
        "heavy_chains": last.chains,
    }
    chained = min(turn.longest_chain for turn in turns["chained"])
    return figures, [
        Check("chaining: light tasks in one process", chained, "==", len(TASKS)),
        Check("chaining: mean latency, unchained / chained", _gain(means_ms), ">=", 2.0),
        Check(
            "chaining: CPU per item, chained / unchained",
            ratio(cost["chained"], cost["unchained"]),
            "<=",
            0.67,
        ),
        Check(
            "chaining: load of the heaviest process of heavy tasks",
            heaviest_chain(last),
            "<=",
            UTILIZATION_MAX,
        ),
        Check("chaining: items lost or duplicated", harmed, "==", 0),
    ]


def _gain(means_ms: dict[str, float | None]) -> float | None:
    return ratio(means_ms["unchained"], means_ms["chained"])
