"""At a low rate lifetimes grow until the bound is used, and shipping costs less; a tighter bound is kept."""

import time
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.control_reaction import held_again_s
from penstock.bench.control_run import ControlledRun, controlled_run
from penstock.bench.control_settings import INTERVAL_S, control_plan
from penstock.bench.harness import Check, Effort, median, ratio
from penstock.bench.windows import CpuSpan, cpu_span
from penstock.control.loop import Cycle
from penstock.spark.job import Job
from penstock.testing import Ledger, stamped

RATE_PER_S = 2_000.0
WIDE_MS, TIGHT_MS = 100.0, 40.0
SETTLE_S = 18.0
SLOTS = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """One run, and the time with the wide bound; a run at once has no other one."""

    one: ControlledRun
    wide: CpuSpan
    tightened_s: float | None = None

    @property
    def cpu_us_per_item(self) -> float | None:
        return self.one.cpu_us_per_item(self.wide)

    def cycles_before_tightening(self) -> list[Cycle]:
        """Those with the wide bound."""
        if self.tightened_s is None:
            return self.one.cycles
        tightened_at_s = self.one.began_at_s + self.tightened_s
        return [cycle for cycle in self.one.cycles if cycle.at_s <= tightened_at_s]

    def used(self) -> float | None:
        """How much of the wide bound the mean latency was."""
        return ratio(self.one.mean_ms(*self.one.seconds_of(self.wide)), WIDE_MS)

    def used_tight(self) -> float | None:
        """How much of the tight bound, when there had been time to settle."""
        if self.tightened_s is None:
            return None
        begin_s = self.tightened_s + 3 * INTERVAL_S
        return ratio(self.one.mean_ms(begin_s, begin_s + 2 * INTERVAL_S), TIGHT_MS)

    def followed(self) -> float | None:
        """Adjustment intervals from the change of the bound until it is kept."""
        if self.tightened_s is None:
            return None
        seconds = held_again_s(self.one, self.tightened_s, TIGHT_MS, INTERVAL_S / 2)
        return None if seconds is None else seconds / INTERVAL_S


def unchanged(item: Any) -> Any:
    """A task that costs next to nothing."""
    return item


def batching(effort: Effort) -> dict[str, list[Turn]]:
    """Shipping at once and under nephele, in turn."""
    turns, window_s = (1, 8.0) if effort is Effort.QUICK else (2, 15.0)
    bench_session(SLOTS)
    taken: dict[str, list[Turn]] = {"at_once": [], "nephele": []}
    for _ in range(turns):
        taken["at_once"].append(one_turn("static", window_s, SETTLE_S / 2))
        taken["nephele"].append(one_turn("nephele", window_s, SETTLE_S))
    return taken


def one_turn(policy: str, window_s: float, settle_s: float) -> Turn:
    """Settle, look at the cost, and with a policy that minds it: tighten the bound and watch."""
    spans: list[CpuSpan] = []

    def watch(job: Job) -> None:
        time.sleep(settle_s)
        spans.append(cpu_span(window_s))
        if policy != "static":
            job.set_bound("c1", f"{TIGHT_MS} ms")
            time.sleep(6 * INTERVAL_S)

    with Ledger() as ledger:
        flow = penstock.Flow("batching")
        items = flow.source(penstock.paced(stamped, RATE_PER_S), name="items")
        items.map(unchanged, name="pass").sink(ledger, name="ledger")
        flow.constrain(f"{WIDE_MS} ms", ["items->pass", "pass", "pass->ledger"])
        one = controlled_run(flow, ledger, control_plan(policy), watch)
    (wide,) = spans
    return Turn(one, wide, None if policy == "static" else one.seconds_of(wide)[1])


def summarise(turns: dict[str, list[Turn]]) -> tuple[dict[str, Any], list[Check]]:
    """Medians of the turns."""
    cost = {
        name: median([turn.cpu_us_per_item for turn in taken if turn.cpu_us_per_item is not None])
        for name, taken in turns.items()
    }
    used = [turn.used() for turn in turns["nephele"]]
    used_tight = [turn.used_tight() for turn in turns["nephele"]]
    followed = [turn.followed() for turn in turns["nephele"]]
    all_turns = [turn for taken in turns.values() for turn in taken]
    harmed = sum(turn.one.harm()["lost"] + turn.one.harm()["duplicated"] for turn in all_turns)
    figures = {
        "cpu_us_per_item": cost,
        "turns_cpu_us_per_item": {n: [turn.cpu_us_per_item for turn in t] for n, t in turns.items()},
        "turns_used_of_100_ms": used,
        "turns_used_of_40_ms": used_tight,
        "turns_intervals_until_the_tight_bound_held": followed,
        "lifetimes_ms": _lifetimes_ms(turns["nephele"][-1]),
    }
    shares = [share for share in used if share is not None]
    known = [count for count in followed if count is not None]
    complete = len(known) == len(followed)
    return figures, [
        Check("batching: share of the bound used", min(shares, default=None), ">=", 0.6),
        Check("batching: share of the bound used, at most", max(shares, default=None), "<=", 0.95),
        Check(
            "batching: CPU per item, nephele / at once", ratio(cost["nephele"], cost["at_once"]), "<=", 0.5
        ),
        Check("batching: intervals until a tighter bound holds", max(known) if complete else None, "<=", 2),
        Check("batching: items lost or duplicated", harmed, "==", 0),
    ]


def _lifetimes_ms(turn: Turn) -> list[list[float | None]]:
    return [[stream.batch_lifetime_ms for stream in cycle.snapshot.streams] for cycle in turn.one.cycles]
