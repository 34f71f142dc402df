"""An async task whose load climbs and falls: who waits for many calls at once is not busy many times over.

Calls of s seconds, c of them at a time, make c / s items/s of a replica: that is what policies must see, and
not 1 / s (c times too many replicas), nor the little time that its thread works (never more than one).
"""

import asyncio
import math
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.control_run import ControlledRun, controlled_run
from penstock.bench.control_settings import control_plan
from penstock.bench.harness import Check, Effort
from penstock.io.schedule import Schedule, steps
from penstock.testing import Ledger
from penstock.testing.ledger import Stamped, stamped

TASK = "ask"
CALL_S = 0.1
CONCURRENCY = 20
REPLICA_PER_S = CONCURRENCY / CALL_S
LOW_PER_S, HIGH_PER_S = 120.0, 500.0
NEEDED = {"low": math.ceil(LOW_PER_S / REPLICA_PER_S), "high": math.ceil(HIGH_PER_S / REPLICA_PER_S)}
RESTS_S = 10.0
SPARE = 1  # what a policy may take beyond that, to keep the bound or because rates are measured
MOST = 12
BOUND_MS = 150.0
POLICIES = ("nephele", "ds2")


async def ask(item: Stamped) -> Stamped:
    """Waits for an answer."""
    await asyncio.sleep(CALL_S)
    return item


@dataclass(frozen=True, slots=True)
class Load:
    """Low, high and low again: so many seconds each."""

    low_s: float
    high_s: float
    last_s: float

    def schedule(self) -> Schedule:
        """The rates over time."""
        return steps([(self.low_s, LOW_PER_S), (self.high_s, HIGH_PER_S), (self.last_s, LOW_PER_S)])

    def ends(self) -> dict[str, tuple[float, float]]:
        """When a policy must have come to rest: the last seconds of the high rate, and of the low one."""
        high_s = self.low_s + self.high_s
        last_s = high_s + self.last_s
        return {"high": (high_s - RESTS_S, high_s), "low": (last_s - RESTS_S, last_s)}


QUICK, FULL = Load(10.0, 26.0, 26.0), Load(20.0, 50.0, 60.0)


def calls(effort: Effort) -> tuple[Load, dict[str, ControlledRun]]:
    """One run under each policy."""
    load = QUICK if effort is Effort.QUICK else FULL
    bench_session(MOST + 2)
    return load, {policy: one_run(policy, load) for policy in POLICIES}


def one_run(policy: str, load: Load) -> ControlledRun:
    """source -> ask -> ledger, from one replica on."""
    with Ledger() as ledger:
        flow = penstock.Flow("calls")
        items = flow.source(penstock.paced(stamped, load.schedule()), name="items")
        replicas = penstock.elastic(1, MOST, initial=1, pool=MOST)
        asked = items.map(ask, name=TASK, concurrency=CONCURRENCY, parallelism=replicas)
        asked.sink(ledger, name="ledger")
        flow.constrain(f"{BOUND_MS} ms", [f"items->{TASK}", TASK, f"{TASK}->ledger"], name="asked")
        return controlled_run(flow, ledger, control_plan(policy))


def replicas_between(one: ControlledRun, begin_s: float, end_s: float) -> list[int]:
    """Those that were seen in that time."""
    return [
        cycle.snapshot.tasks[TASK].parallelism
        for cycle in one.cycles
        if begin_s <= cycle.at_s - one.began_at_s <= end_s
    ]


def summarise(load: Load, runs: dict[str, ControlledRun]) -> tuple[dict[str, Any], list[Check]]:
    """The replicas that each policy came to, at the high rate and at the low one after it."""
    figures: dict[str, Any] = {"needed": NEEDED}
    checks = []
    for policy, one in runs.items():
        seen = {name: replicas_between(one, *span) for name, span in load.ends().items()}
        means_ms = {name: one.mean_ms(*span) for name, span in load.ends().items()}
        harm = one.harm()
        figures[policy] = {"replicas": seen, "mean_ms": means_ms, **harm}
        fewest, most = min(seen["high"], default=None), max(seen["high"], default=None)
        checks += [
            Check(f"calls {policy}: replicas at the high rate", fewest, ">=", NEEDED["high"]),
            Check(f"calls {policy}: replicas at the high rate, most", most, "<=", NEEDED["high"] + SPARE),
            Check(
                f"calls {policy}: replicas at the low rate",
                max(seen["low"], default=None),
                "<=",
                NEEDED["low"] + SPARE,
            ),
            Check(f"calls {policy}: mean ms at the high rate", means_ms["high"], "<=", BOUND_MS),
            Check(f"calls {policy}: items lost or duplicated", harm["lost"] + harm["duplicated"], "==", 0),
        ]
    return figures, checks
