"""PrimeTest under every policy: is 20 ms held, and with how many replica-seconds?

The profile for two cores climbs from a rate to ten times that rate in six steps and down again. Its published
rates (2,000 to 20,000 items/s) are beyond two cores: over Spark's shuffle 15 processes that ship every 5 ms
kept them busy at 10,000 items/s already. So the rates are lower and everything else is the same. They leave
cores free at the peak, also in an hour in which the cores are slow: on full cores no number of replicas holds
a bound. The static configuration is sized for the peak, and is as small as it can be:

- testers that sleep are busy for three quarters of the time then;
- of testers that compute there are two. The peak is worked out from the time that a test takes in this hour.
  Among other processes, whose code takes turns in the caches, it takes two fifths more, so that one tester
  falls behind at the peak; all processes together use four fifths of the two cores then.

Java compiles for a minute at the highest rate, on a fifth of a core. Whoever ran first would pay for it, so a
run at that rate comes before the contest and does not count.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.apps.primetest import NUMBER_BYTES, Work, number, prime_flow, profile, tester
from penstock.bench.baselines import bench_session
from penstock.bench.control_run import ControlledRun, controlled_run
from penstock.bench.control_settings import POLICIES, control_plan
from penstock.bench.harness import Check, Effort, ratio
from penstock.io.schedule import Schedule
from penstock.testing import Ledger

BOUND_MS = 20.0
WINDOW_S = 5.0
WARM_UP_S = 20.0
COMPILE_S = 60.0
LIFETIME = "5 ms"
TASK = "tester"
HELD_BAR, REPLICAS_BAR = 0.92, 0.8
OWN_BARS = {"rate_limited": 0.6, "cpu": REPLICAS_BAR}
"""What `penstock` may take of the replica-seconds of `static`. Of two testers it cannot do with so few."""
LARGE_NUMBER_BYTES = 64
TIMINGS, TIMED_TESTS = 5, 1_000
PEAK_LOAD = 0.85


@dataclass(frozen=True, slots=True)
class Contest:
    """A tester and the rates that suit it."""

    work: Work
    low_per_s: float
    high_per_s: float
    most: int
    first: int
    seconds: float
    items_per_s: float = 250.0
    number_bytes: int = NUMBER_BYTES

    @property
    def schedule(self) -> Schedule:
        """The profile after a warm-up at its lowest rate."""
        shape = profile(self.seconds, self.low_per_s, self.high_per_s)
        return Schedule((WARM_UP_S, *shape.spans_s), (self.low_per_s, *shape.rates_per_s))

    @property
    def peak(self) -> Schedule:
        """The highest rate, for as long as Java compiles."""
        return Schedule((COMPILE_S,), (self.high_per_s,))

    @property
    def measured(self) -> tuple[float, float]:
        """From when to when the profile lasts."""
        return WARM_UP_S, WARM_UP_S + self.seconds


RATE_LIMITED = Contest("rate_limited", 300.0, 3_000.0, most=16, first=2, seconds=210.0)


def time_of_a_test() -> float:
    """Seconds of processor time that a tester takes for a large number, now: the median of some timings."""
    numbers = [number(0, index, 0, 0, LARGE_NUMBER_BYTES) for index in range(TIMED_TESTS)]
    return statistics.median(_timed(numbers) for _ in range(TIMINGS)) / TIMED_TESTS


def _timed(numbers: Sequence[Any]) -> float:
    began_s = time.process_time()
    for one in numbers:
        tester(one)
    return time.process_time() - began_s


def cpu_bound(test_s: float) -> Contest:
    """Two testers that compute, at a peak that is more than one can do."""
    peak_per_s = PEAK_LOAD / test_s
    return Contest(
        "cpu", peak_per_s / 10, peak_per_s, most=2, first=1, seconds=210.0, number_bytes=LARGE_NUMBER_BYTES
    )


def contest(chosen: Contest, effort: Effort) -> dict[str, ControlledRun]:
    """One run for each policy; a quick one has the first three alone."""
    bench_session(chosen.most + 2)
    policies = POLICIES[:3] if effort is Effort.QUICK else POLICIES
    one_run(chosen, "static", chosen.peak)
    return {policy: one_run(chosen, policy, chosen.schedule) for policy in policies}


def one_run(chosen: Contest, policy: str, schedule: Schedule, *settings: str) -> ControlledRun:
    """A load under one policy; `static` has all replicas from the beginning."""
    first = chosen.most if policy == "static" else chosen.first
    with Ledger() as ledger:
        flow = prime_flow(
            schedule,
            ledger,
            testers=penstock.elastic(1, chosen.most, initial=first, pool=chosen.most),
            bound=f"{BOUND_MS} ms",
            lifetime=LIFETIME,
            work=chosen.work,
            items_per_s=chosen.items_per_s,
            number_bytes=chosen.number_bytes,
        )
        return controlled_run(flow, ledger, control_plan(policy, *settings))


def outcome(chosen: Contest, one: ControlledRun) -> dict[str, Any]:
    """The figures of one run; the warm-up does not count."""
    begin_s, end_s = chosen.measured
    means_ms = one.means_ms(begin_s, end_s, WINDOW_S)
    return {
        "peak_per_s": chosen.high_per_s,
        "share_held": sum(mean is not None and mean <= BOUND_MS for mean in means_ms) / len(means_ms),
        "mean_ms": one.mean_ms(begin_s, end_s),
        "p95_ms": one.quantile_ms(begin_s, end_s, 0.95),
        "replica_seconds": one.replica_seconds(TASK, begin_s, end_s),
        "actions": one.actions(),
        "cpu_s_per_1000_items": 1000.0 * one.cpu_s / max(1, len(one.entries)),
        "intervals_ms": means_ms,
        **one.harm(),
    }


def summarise(chosen: Contest, runs: dict[str, ControlledRun]) -> tuple[dict[str, Any], list[Check]]:
    """Every policy's figures; the bars are nephele's and penstock's."""
    figures = {policy: outcome(chosen, one) for policy, one in runs.items()}
    nephele, static = figures["nephele"], figures["static"]
    named = f"primetest {chosen.work}"
    share = ratio(nephele["replica_seconds"], static["replica_seconds"])
    own = [] if "penstock" not in figures else _own_checks(chosen, named, figures["penstock"], static)
    harmed = sum(figure["lost"] + figure["duplicated"] for figure in figures.values())
    return figures, [
        Check(f"{named}: intervals that nephele held", nephele["share_held"], ">=", HELD_BAR),
        Check(f"{named}: intervals that static held", static["share_held"], ">=", HELD_BAR),
        Check(f"{named}: replica-seconds, nephele / static", share, "<=", REPLICAS_BAR),
        *own,
        Check(f"{named}: items lost or duplicated", harmed, "==", 0),
    ]


def _own_checks(chosen: Contest, named: str, own: dict[str, Any], static: dict[str, Any]) -> list[Check]:
    share = ratio(own["replica_seconds"], static["replica_seconds"])
    return [
        Check(f"{named}: intervals that penstock held", own["share_held"], ">=", HELD_BAR),
        Check(f"{named}: replica-seconds, penstock / static", share, "<=", OWN_BARS[chosen.work]),
    ]
