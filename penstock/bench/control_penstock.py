"""The policy `penstock` beside the others, each with the settings that it always has on Spark.

- `climb`: PrimeTest's short profile, tenfold within 28 s, from one tester that cannot carry its lowest rate.
- `tweets`: TwitterSentiments, a day in four minutes with a crowd in it; two bounds.
- `percentile`: PrimeTest's long profile, from one tester, too, with a bound of p95 for 97 % of its windows.

All decide every second; `static` has all replicas from the beginning. Held are intervals, each judged over
the window of its constraint that ends with it (policy/held.py), as in reports: 5 s for `percentile`, else the
interval by itself. Seconds over a bound are those of intervals that took longer by themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

import penstock
from penstock.apps import twitter
from penstock.apps.board import Board
from penstock.apps.primetest import drop, prime_flow, profile, short_profile
from penstock.apps.texts import checked_texts
from penstock.apps.twitter_source import TweetMaker
from penstock.apps.twitter_tasks import per_topic
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort
from penstock.bench.telling import tell
from penstock.control.control_plan import ControlPlan
from penstock.control.loop import Cycle
from penstock.flow import Flow
from penstock.io.schedule import Schedule, steps
from penstock.policy.held import Judge
from penstock.policy.measured import finite, sequence_latency_ms
from penstock.stats.snapshot import ConstraintSpec, Snapshot

POLICIES = ("penstock", "nephele", "ds2", "threshold", "static")
OWN = "penstock"
MOST, ITEMS_PER_S, PEAK_PER_S = 16, 250.0, 3_000.0
COMPILE_S = 30.0
INTERVAL_S = 1.0
REST_S = 8.0
"""Of the short profile; it lasts two seconds more. The simulator is compared with what comes after it."""
DAY_S, LOW_PER_S, HIGH_PER_S = 240.0, 80.0, 300.0
AFTER_S = 10.0
TWEETS_SLOTS = 48
PERCENTILE_S, PERCENTILE_MS, SHARE = 210.0, 30.0, 0.97
CLIMB_BAR, TWEETS_BAR, CROWD_BAR_S = 0.85, 0.98, 4.0


@dataclass(frozen=True, slots=True)
class Watched:
    """A run that is over, as its controller saw it."""

    plan: ControlPlan
    cycles: Sequence[Cycle]
    problem: str | None

    @property
    def snapshots(self) -> list[Snapshot]:
        return [cycle.snapshot for cycle in self.cycles]


def watched(flow: Flow, policy: str) -> Watched:
    """Run a flow to its end; all items are measured, for some come too seldom to be sampled each second."""
    plan = ControlPlan(policy, interval=INTERVAL_S)
    tell(f"  {flow.name} under {policy}")
    job = penstock.run(flow, policy=plan.policy, settings=plan.settings, interval=plan.interval, sampling=1.0)
    assert job.control is not None, "flows of benches have constraints"
    job.await_termination()
    return Watched(plan, job.control.cycles(), job.control.problem)


def climb(effort: Effort) -> dict[str, Watched]:
    """One run for each policy, after one that Java compiles in."""
    policies = (OWN, "static") if effort is Effort.QUICK else POLICIES
    _warm_up()
    load = short_profile(PEAK_PER_S)
    return {policy: watched(_testers(policy, load, window=f"{INTERVAL_S} s"), policy) for policy in policies}


def percentile(effort: Effort) -> dict[str, Watched]:
    """Of those that can keep one."""
    seconds = 60.0 if effort is Effort.QUICK else PERCENTILE_S
    _warm_up()
    load = profile(seconds, PEAK_PER_S / 10.0, PEAK_PER_S)
    return {
        policy: watched(_testers(policy, load, bound_ms=PERCENTILE_MS, statistic="p95", share=SHARE), policy)
        for policy in (OWN, "static")
    }


def tweets(effort: Effort) -> dict[str, Watched]:
    """One day under each policy."""
    policies = (OWN,) if effort is Effort.QUICK else POLICIES
    bench_session(TWEETS_SLOTS)
    return {policy: watched(_day(policy), policy) for policy in policies}


def _warm_up() -> None:
    bench_session(MOST + 2)
    watched(_testers("static", steps([(COMPILE_S, PEAK_PER_S)])), "static")


def _testers(policy: str, load: Schedule, *, bound_ms: float = 20.0, **constraint: Any) -> Flow:
    initial = MOST if policy == "static" else 1
    return prime_flow(
        load,
        drop,
        testers=penstock.elastic(1, MOST, initial=initial, pool=MOST),
        bound=f"{bound_ms} ms",
        lifetime="5 ms",
        work="rate_limited",
        items_per_s=ITEMS_PER_S,
        **constraint,
    )


def _day(policy: str) -> Flow:
    schedule, crowds = twitter.day(DAY_S, LOW_PER_S, HIGH_PER_S)

    def replicas(most: int) -> Any:
        return penstock.elastic(1, most, initial=most if policy == "static" else 2, pool=most)

    return twitter.twitter_flow(
        TweetMaker(schedule, crowds, checked_texts(None)),
        Board(None, per_topic),
        hot_topics=replicas(8),
        filters=replicas(8),
        sentiments=replicas(24),
        limits=twitter.SLOW,
        window=f"{INTERVAL_S} s",
        seconds=DAY_S,
    )


def outcome(one: Watched) -> dict[str, Any]:
    """By constraint how often it was held; replica-seconds of all elastic tasks, and changes."""
    snapshots = one.snapshots
    totals = [{name: task.parallelism for name, task in s.elastic_tasks().items()} for s in snapshots]
    return {
        "held": held(snapshots),
        "over_s": over_s(snapshots),
        "replica_seconds": sum(
            sum(now.values()) * snapshot.interval_s for now, snapshot in zip(totals, snapshots, strict=True)
        ),
        "changes": sum(before != after for before, after in pairwise(totals)),
        "problem": one.problem,
    }


def held(snapshots: Sequence[Snapshot]) -> dict[str, float | None]:
    """Share of the intervals held, by constraint."""
    judge = Judge()
    verdicts: dict[str, list[bool]] = {}
    for snapshot in snapshots:
        for name, found in judge.verdicts(snapshot).items():
            verdicts.setdefault(name, []).extend([] if found.held is None else [found.held])
    return {name: sum(found) / len(found) if found else None for name, found in verdicts.items()}


def over_s(snapshots: Sequence[Snapshot], begin_s: float = 0.0, until_s: float = inf) -> dict[str, float]:
    """Seconds of intervals that took longer than the bound, by constraint, of those that end in that time.

    To a tenth: intervals of a clock are never exact.
    """
    found: dict[str, float] = {}
    end_s = 0.0
    for snapshot in snapshots:
        end_s += snapshot.interval_s
        for one in snapshot.constraints:
            took_ms = _took_ms(snapshot, one)
            over = begin_s < end_s <= until_s and took_ms is not None and took_ms > one.latency_ms
            found[one.name] = found.get(one.name, 0.0) + (snapshot.interval_s if over else 0.0)
    return {name: round(seconds, 1) for name, seconds in found.items()}


def _took_ms(snapshot: Snapshot, constraint: ConstraintSpec) -> float | None:
    if constraint.statistic == "mean":
        return sequence_latency_ms(snapshot, constraint)
    return finite(constraint.p95_ms if constraint.statistic == "p95" else constraint.p99_ms)


def summarise_climb(runs: Mapping[str, Watched]) -> tuple[dict[str, Any], list[Check]]:
    """How much of the climb each held."""
    figures = {policy: outcome(one) for policy, one in runs.items()}
    return figures, [Check("climb: intervals that penstock held", _least(figures[OWN]), ">=", CLIMB_BAR)]


def summarise_tweets(runs: Mapping[str, Watched]) -> tuple[dict[str, Any], list[Check]]:
    """Both bounds, and the seconds over one of them around the crowd."""
    figures = {}
    _, (crowd,) = twitter.day(DAY_S, LOW_PER_S, HIGH_PER_S)
    for policy, one in runs.items():
        at_crowd = over_s(one.snapshots, crowd.begin_s, crowd.end_s + AFTER_S)
        figures[policy] = {**outcome(one), "over_at_the_crowd_s": max(at_crowd.values(), default=0.0)}
    own = figures[OWN]
    return figures, [
        Check(
            "tweets: intervals that penstock held, of the bound it held less", _least(own), ">=", TWEETS_BAR
        ),
        Check("tweets: seconds over a bound at the crowd", own["over_at_the_crowd_s"], "<=", CROWD_BAR_S),
    ]


def summarise_percentile(runs: Mapping[str, Watched]) -> tuple[dict[str, Any], list[Check]]:
    """The share that was asked for."""
    figures = {policy: outcome(one) for policy, one in runs.items()}
    return figures, [Check("percentile: windows that penstock held", _least(figures[OWN]), ">=", SHARE)]


def _least(figures: Mapping[str, Any]) -> float | None:
    shares = [share for share in figures["held"].values() if share is not None]
    return min(shares, default=None)
