"""Keys of which one has 20, 50 or 70 % of all items: what the controller makes of it by dividing keys anew.

Four replicas, each of which takes a fixed time for an item without using the processor. Evenly divided, the
replica with the heavy key gets a little more than it can do, so its items wait longer and longer; the others
have time left. The policy changes nothing; its guards divide keys by their load, at an epoch mark.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy

import penstock
from penstock import state
from penstock.apps.rate_limited import RateLimit
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result
from penstock.control.decision_log import Entry
from penstock.policy.guards.divide_keys import RULE
from penstock.spark.job import Job
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import Entries, arrivals
from penstock.testing.ledger import Stamped

SHARES: Final = (0.2, 0.5, 0.7)
REPLICAS: Final = 4
CAPACITY_PER_S: Final = 250.0
TOO_MUCH: Final = 1.05
"""What the busiest replica gets of what it can do while keys are evenly divided."""
KEYS: Final = 10_000
SLOTS: Final = REPLICAS + 2
_CYCLE: Final = 100
_STEP: Final = 37  # the heavy key's items are spread over a cycle
_WITHIN_S: Final = 40.0
_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Length:
    """Until keys may be divided, until what waited is worked off after that, and what counts then."""

    before_s: float
    settle_s: float
    counted_s: float


LENGTHS: Final = {Effort.QUICK: Length(6.0, 4.0, 4.0), Effort.FULL: Length(10.0, 15.0, 20.0)}


class KeyOf:
    """The key of an item, so that a share of all items has key 0."""

    def __init__(self, share: float) -> None:
        self._heavy = round(share * _CYCLE)

    def __call__(self, item: Stamped) -> int:
        index = item[1]
        return 0 if index * _STEP % _CYCLE < self._heavy else 1 + index % KEYS


class Limited:
    """Counts the items of a key, a fixed number of items a second in each replica."""

    seen = state.value(0)

    def open(self, context: Any) -> None:  # noqa: ARG002 - what a task is given
        """A limit of its own for each replica."""
        self._limit = RateLimit(CAPACITY_PER_S)

    def process(self, item: Stamped, out: penstock.Out[Stamped]) -> None:
        """One more of its key."""
        begun_s = self._limit.begin()
        self.seen += 1
        self._limit.end(begun_s)
        out(item)


def bench(effort: Effort) -> Result:
    """One share after the other."""
    bench_session(SLOTS)
    figures: dict[str, Any] = {"replicas": REPLICAS, "items_per_s_of_a_replica": CAPACITY_PER_S}
    checks: list[Check] = []
    for share in SHARES:
        found = run(share, LENGTHS[effort])
        name = f"{share:.0%} of the items have one key"
        figures[name] = found
        least, after = found["busiest_share_least_possible"], found["busiest_share_after"]
        checks += [
            Check(f"{name}: busiest replica against the least possible", after / least, "<=", 1.1),
            Check(
                f"{name}: p99 after against before", found["p99_ms_after"] / found["p99_ms_before"], "<", 1
            ),
            Check(f"{name}: sources stood still", found["boundaries"], "==", 0),
            Check(f"{name}: counted wrong", found["counted_wrong"], "==", 0),
        ]
    return Result("skew", figures, checks)


def run(share: float, length: Length) -> dict[str, Any]:
    """From an even division to another one."""
    evenly = share + (1 - share) / REPLICAS
    rate_per_s = TOO_MUCH * CAPACITY_PER_S / evenly
    with Ledger() as ledger, tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
        flow = penstock.Flow("skewed")
        items = flow.source(penstock.paced(stamped, rate_per_s), name="items").batched("5 ms")
        pool = penstock.elastic(1, REPLICAS, initial=REPLICAS, pool=REPLICAS)
        counts = items.by_key(KeyOf(share)).task(Limited, name="counts", parallelism=pool)
        counts.sink(ledger, name="ledger")
        job = penstock.run(
            flow,
            checkpoint=Path(place) / "checkpoint",
            policy="static",
            interval="2 s",
            settings=[f"guards.warm_up_s={length.before_s}"],
        )
        entry = _divided(job)
        divided_ns = time.monotonic_ns()
        time.sleep(length.settle_s)
        begin_ns = time.monotonic_ns()
        time.sleep(length.counted_s)
        end_ns = time.monotonic_ns()
        told = [
            reason.why
            for one in job.decisions()[-2:]
            for reason in one.decision.reasons
            if reason.rule == RULE
        ]
        boundaries = int(job.last_boundary() is not None)
        job.stop()
        entries = arrivals(ledger)
        held = sum(int(one.value) for one in job.state("counts"))
    return {
        "items_per_s": rate_per_s,
        **_shares(entry),
        "change_ms": None if entry.effect is None else entry.effect.after_ms,
        **_latencies("before", entries, divided_ns - 2 * 10**9, divided_ns),
        **_latencies("after", entries, begin_ns, end_ns),
        "boundaries": boundaries,
        "counted_wrong": abs(held - len(numpy.unique(entries.index))),
        "told_then": told[-1] if told else None,
    }


def _divided(job: Job) -> Entry:
    """The decision with which keys were divided anew, carried out."""
    deadline_s = time.monotonic() + _WITHIN_S
    while True:
        for entry in job.decisions():
            if entry.decision.key_tables and entry.effect is not None:
                return entry
        if job.await_end(_LOOK_S) or time.monotonic() > deadline_s:
            raise RuntimeError(f"keys were not divided within {_WITHIN_S:g} s: {job.exception()}")


def _shares(entry: Entry) -> dict[str, Any]:
    """Of the load, as the decision saw and foresaw it."""
    reason = next(one for one in entry.decision.reasons if one.rule == RULE)
    seen, foreseen = reason.inputs or {}, reason.prediction or {}
    return {
        "busiest_share_before": seen["busiest_share"],
        "busiest_share_after": foreseen["busiest_share"],
        "busiest_share_least_possible": foreseen["least_possible_share"],
        "items_moved_share": foreseen["moved_share"],
    }


def _latencies(when: str, entries: Entries, begin_ns: int, end_ns: int) -> dict[str, float | None]:
    latency_ms = entries.due_between(begin_ns, end_ns).latency_ms()
    if not len(latency_ms):
        return {f"p50_ms_{when}": None, f"p99_ms_{when}": None}
    return {f"p{q}_ms_{when}": float(numpy.quantile(latency_ms, q / 100)) for q in (50, 99)}
