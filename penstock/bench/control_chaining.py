"""Four tasks in a row, joined by forward streams: the policy chains light ones, not heavy ones."""

import time
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.apps.rate_limited import RateLimited
from penstock.bench.baselines import bench_session
from penstock.bench.control_batching import unchanged
from penstock.bench.control_run import NS_PER_S, ControlledRun, controlled_run
from penstock.bench.control_settings import control_plan
from penstock.bench.harness import Check, Effort, median, ratio
from penstock.bench.windows import Window, window
from penstock.policy.measured import largest_utilization
from penstock.spark.job import Job
from penstock.stats.snapshot import Snapshot
from penstock.testing import Ledger, stamped

TASKS = ("decode", "merge", "overlay", "encode")
RATE_PER_S = 10_000.0
HEAVY_RATE_PER_S, HEAVY_ITEMS_PER_S = 150.0, 400.0
BOUND = "50 ms"
SETTLE_S = 20.0
SLOTS = 8
UTILIZATION_MAX = 0.9


@dataclass(frozen=True, slots=True)
class Turn:
    """A run and what its window showed."""

    one: ControlledRun
    cost: Window
    mean_ms: float | None

    @property
    def longest_chain(self) -> int:
        """The number of tasks in the longest chain at the end."""
        return max(len(chain) for chain in self.one.cycles[-1].snapshot.chains)


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
    return _turn(RATE_PER_S, unchanged, window_s, lambda _: None, *more)


def heavy(window_s: float) -> Turn:
    """Tasks that are busy for three eighths of the time each, all in one process at the beginning."""
    limited = RateLimited(unchanged, HEAVY_ITEMS_PER_S)
    return _turn(HEAVY_RATE_PER_S, limited, window_s, lambda job: job.set_chains([list(TASKS)]))


def _turn(rate_per_s: float, work: Any, window_s: float, begin: Any, *more: str) -> Turn:
    costs: list[Window] = []
    marks_ns: list[int] = []

    def watch(job: Job) -> None:
        begin(job)
        time.sleep(SETTLE_S)
        marks_ns.append(time.monotonic_ns())
        costs.append(window(job, window_s))
        marks_ns.append(time.monotonic_ns())

    with Ledger() as ledger:
        flow = penstock.Flow("pipeline")
        stream = flow.source(penstock.paced(stamped, rate_per_s), name="packets").map(work, name=TASKS[0])
        for name in TASKS[1:]:
            stream = stream.forward().map(work, name=name)
        stream.sink(ledger, name="broadcast")
        flow.constrain(BOUND, start=f"packets->{TASKS[0]}", end=f"{TASKS[-1]}->broadcast")
        one = controlled_run(flow, ledger, control_plan("nephele", *more), watch)
    begin_s, end_s = ((mark_ns - one.began_ns) / NS_PER_S for mark_ns in marks_ns)
    return Turn(one, costs[0], one.mean_ms(begin_s, end_s))


def heaviest_chain(snapshot: Snapshot) -> float:
    """The load of the busiest process: the largest utilizations of its tasks added up."""
    return max(
        sum(largest_utilization(snapshot.tasks[name]) or 0.0 for name in chain) for chain in snapshot.chains
    )


def summarise(turns: dict[str, list[Turn]]) -> tuple[dict[str, Any], list[Check]]:
    """Medians of the turns."""
    means_ms = {name: median([t.mean_ms for t in taken if t.mean_ms]) for name, taken in turns.items()}
    cost = {
        name: median([t.cost.cpu_us_per_item for t in taken if t.cost.cpu_us_per_item])
        for name, taken in turns.items()
    }
    last = turns["heavy"][-1].one.cycles[-1].snapshot
    all_turns = [turn for taken in turns.values() for turn in taken]
    harmed = sum(turn.one.harm()["lost"] + turn.one.harm()["duplicated"] for turn in all_turns)
    figures = {
        "mean_ms": means_ms,
        "cpu_us_per_item": cost,
        "turns_mean_ms": {name: [turn.mean_ms for turn in taken] for name, taken in turns.items()},
        "turns_cpu_us_per_item": {n: [turn.cost.cpu_us_per_item for turn in t] for n, t in turns.items()},
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
