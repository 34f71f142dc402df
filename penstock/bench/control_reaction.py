"""The rate doubles in one step: how soon the bound holds again, how soon the first decision takes effect."""

from typing import Any

import penstock
from penstock.apps.primetest import prime_flow
from penstock.bench.baselines import bench_session
from penstock.bench.control_primetest import BOUND_MS, LIFETIME, TASK
from penstock.bench.control_run import ControlledRun, controlled_run
from penstock.bench.control_settings import INTERVAL_S, control_plan
from penstock.bench.harness import Check, Effort, median
from penstock.control.decision_log import Entry
from penstock.io.schedule import steps
from penstock.testing import Ledger

BEFORE_PER_S, AFTER_PER_S = 1_000.0, 2_000.0
ITEMS_PER_S = 250.0
FIRST, MOST = 6, 16
GRID_S = 0.5
# Java compiles for ten seconds, and what was added meanwhile is taken away only when the guards allow it.
BEFORE_S = 40.0


def reaction(effort: Effort) -> list[tuple[float, ControlledRun]]:
    """Some runs, each with the time of its step."""
    turns, after_s = (1, 14.0) if effort is Effort.QUICK else (3, 20.0)
    bench_session(MOST + 2)
    return [(BEFORE_S, one_run(BEFORE_S, after_s)) for _ in range(turns)]


def one_run(before_s: float, after_s: float) -> ControlledRun:
    """Rate-limited testers under nephele."""
    with Ledger() as ledger:
        flow = prime_flow(
            steps([(before_s, BEFORE_PER_S), (after_s, AFTER_PER_S)]),
            ledger,
            testers=penstock.elastic(1, MOST, initial=FIRST, pool=MOST),
            bound=f"{BOUND_MS} ms",
            lifetime=LIFETIME,
            work="rate_limited",
            items_per_s=ITEMS_PER_S,
        )
        return controlled_run(flow, ledger, control_plan("nephele"))


def held_again_s(one: ControlledRun, step_s: float, bound_ms: float, window_s: float) -> float | None:
    """Time from the step until a window begins whose mean is within the bound; None if none does."""
    last_s = float(one.entries.due_ns.max() - one.began_ns) * 1e-9
    for k in range(int((last_s - window_s - step_s) / GRID_S) + 1):
        begin_s = step_s + k * GRID_S
        mean_ms = one.mean_ms(begin_s, begin_s + window_s)
        if mean_ms is not None and mean_ms <= bound_ms:
            return k * GRID_S
    return None


def first_scale_up(one: ControlledRun, step_s: float) -> Entry | None:
    """The first decision after the step that gave the task more replicas."""
    for cycle, entry in zip(one.cycles, one.decisions, strict=False):
        more = entry.decision.parallelism[TASK] > cycle.snapshot.tasks[TASK].parallelism
        if more and entry.at_s - one.began_at_s >= step_s:
            return entry
    return None


def summarise(turns: list[tuple[float, ControlledRun]]) -> tuple[dict[str, Any], list[Check]]:
    """The slowest turn counts for the effect, the middle one for the recovery."""
    again_s = [held_again_s(one, step_s, BOUND_MS, INTERVAL_S) for step_s, one in turns]
    ups = [first_scale_up(one, step_s) for step_s, one in turns]
    effects_ms = [None if up is None or up.effect is None else up.effect.after_ms for up in ups]
    harm = [one.harm() for _, one in turns]
    known_s = [value for value in again_s if value is not None]
    known_ms = [value for value in effects_ms if value is not None]
    figures = {
        "turns_held_again_s": again_s,
        "turns_first_decision_s": [
            None if up is None else up.at_s - one.began_at_s - step_s
            for up, (step_s, one) in zip(ups, turns, strict=True)
        ],
        "turns_effect_ms": effects_ms,
        "turns_replicas": [
            (one.cycles[0].snapshot.tasks[TASK].parallelism, one.cycles[-1].snapshot.tasks[TASK].parallelism)
            for _, one in turns
        ],
        "adjustment_interval_s": INTERVAL_S,
    }
    recovered = median(known_s) if len(known_s) == len(again_s) else None
    intervals = None if recovered is None else recovered / INTERVAL_S
    effect_ms = max(known_ms) if len(known_ms) == len(effects_ms) else None
    return figures, [
        Check("reaction: adjustment intervals until the bound holds again", intervals, "<=", 3),
        Check("reaction: ms from decision to effect", effect_ms, "<=", 1_000),
        Check("reaction: batches begun, workers restarted", _disturbed(turns), "==", 0),
        Check("reaction: items lost or duplicated", sum(h["lost"] + h["duplicated"] for h in harm), "==", 0),
    ]


def _disturbed(turns: list[tuple[float, ControlledRun]]) -> int:
    return sum(one.batches + one.restarts for _, one in turns)
