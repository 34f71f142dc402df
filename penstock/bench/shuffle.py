"""Penstock's own shuffle against Spark's: the same flows over one and the other, in turn.

Each of the two has a process with a Spark of its own, which stays from turn to turn, so that Java has
compiled both; while one has its turn the other has nothing to do. Peers are no part of this.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from penstock.bench.harness import Check, Effort, Result, median, ratio
from penstock.bench.latency import VALID_LAG_MS
from penstock.bench.own_session import OwnSession
from penstock.bench.shuffle_contestant import CPU_RATE_PER_S, Asked, Cost, Gaps, Hop, Pool
from penstock.bench.telling import turns
from penstock.flow import spark_conf

OURS, SPARKS = "penstock", "spark"
MANAGERS = {OURS: spark_conf.LINKS, SPARKS: spark_conf.SPARKS}
CONTESTANT = "penstock.bench.shuffle_contestant"
TURN_TIMEOUT_S = 600.0
TURNS = {Effort.QUICK: 1, Effort.FULL: 3}
KEPT_SHARE = 0.9
Answer = TypeVar("Answer")
Ask = Callable[[str, str, type[Any]], Any]


@dataclass(slots=True)
class Taken:
    """All turns, by contestant."""

    cpu: dict[str, list[Cost]] = field(default_factory=lambda: {OURS: [], SPARKS: []})
    throughput: dict[str, list[Cost]] = field(default_factory=lambda: {OURS: [], SPARKS: []})
    threads: dict[str, list[int]] = field(default_factory=lambda: {OURS: [], SPARKS: []})
    boundary: dict[str, list[Gaps]] = field(default_factory=lambda: {OURS: [], SPARKS: []})
    hop: list[Hop] = field(default_factory=list)
    jvm_hop: list[Hop] = field(default_factory=list)
    small_pool: list[Pool] = field(default_factory=list)
    large_pool: list[Pool] = field(default_factory=list)


def bench(effort: Effort) -> Result:
    """Whoever goes first in one turn goes last in the next."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as empty, ExitStack() as sessions:
        contestants = {
            name: sessions.enter_context(
                OwnSession(
                    [sys.executable, "-P", "-m", CONTESTANT, manager],
                    environment=os.environ,
                    directory=Path(empty),
                )
            )
            for name, manager in MANAGERS.items()
        }

        def ask(who: str, turn: str, kind: type[Answer]) -> Answer:
            question = msgspec.json.encode(Asked(turn, effort)).decode()
            return msgspec.json.decode(contestants[who].ask(question, TURN_TIMEOUT_S).text, type=kind)

        for who in MANAGERS:  # the first flow of a Spark is slow
            ask(who, "threads", int)
        taken = Taken()
        for number in turns(TURNS[effort]):
            take_turns(taken, ask, [*MANAGERS] if number % 2 == 0 else [*reversed(MANAGERS)])
    return summarise(taken)


def take_turns(taken: Taken, ask: Ask, order: list[str]) -> None:
    """One turn of everything."""
    for who in order:
        taken.cpu[who].append(ask(who, "cpu", Cost))
    for who in order:
        if who == OURS:
            taken.hop.append(ask(OURS, "hop", Hop))
        else:
            taken.jvm_hop.append(ask(SPARKS, "jvm_hop", Hop))
    for who in order:
        taken.throughput[who].append(ask(who, "throughput", Cost))
    for who in order:
        taken.threads[who].append(ask(who, "threads", int))
    for pools, turn in ((taken.small_pool, "small_pool"), (taken.large_pool, "large_pool")):
        pools.append(ask(OURS, turn, Pool))
    for who in order:
        turn = "boundary" if who == OURS else "sparks_boundary"
        taken.boundary[who].append(ask(who, turn, Gaps))


def summarise(taken: Taken) -> Result:
    """Medians of the turns against each other."""
    cpu = _by_contestant(taken.cpu, lambda cost: cost.cpu_us_per_item)
    rates = _by_contestant(taken.throughput, lambda cost: cost.items_per_s)
    threads = _by_contestant(taken.threads, float)
    gaps = {
        who: [gap for turn in turns for gap in turn.gap_ms if gap is not None]
        for who, turns in taken.boundary.items()
    }
    hops = {"one_hop": _known(taken.hop), "jvm_hop_over_sparks": _known(taken.jvm_hop)}
    small, large = ([pool.cores for pool in pools] for pools in (taken.small_pool, taken.large_pool))
    middle_small, middle_large = median(small), median(large)
    more = None if middle_small is None or middle_large is None else middle_large - middle_small
    costs = [*taken.cpu[OURS], *taken.throughput[OURS]]
    wrong = sum(cost.wrong for cost in costs) + sum(hop.wrong for hop in taken.hop)
    wrong += sum(turn.wrong for turn in taken.boundary[OURS])
    kept = [cost.items_per_s for costs in taken.cpu.values() for cost in costs]
    lags = [hop.lag_p99_ms for hop in taken.hop if hop.lag_p99_ms is not None]
    figures = {
        "jvm_cpu_us_per_item": cpu,
        "one_hop_mean_ms": hops,
        "at_once_items_per_s": rates,
        "threads_added": threads,
        "idle_cores": {"pool_of_1": small, "pool_of_64": large},
        "boundary_gap_ms": gaps,
    }
    middle = {name: {who: median(turns) for who, turns in of.items()} for name, of in figures.items()}

    def against(name: str) -> float | None:
        return ratio(middle[name][OURS], middle[name][SPARKS])

    one_hop = middle["one_hop_mean_ms"]
    checks = [
        Check("JVM's CPU per item, two hops / Spark's shuffle", against("jvm_cpu_us_per_item"), "<=", 0.45),
        Check("one hop / JVM-only hop", ratio(one_hop["one_hop"], one_hop["jvm_hop_over_sparks"]), "<=", 1.0),
        Check("items/s at once / Spark's shuffle", against("at_once_items_per_s"), ">=", 1.5),
        Check("threads added / Spark's shuffle", against("threads_added"), "<=", 0.25),
        Check("cores of 63 idle replicas more", more, "<=", 0.02),
        Check("processes of a pool of 64", max(p.processes for p in taken.large_pool), "==", 1),
        Check("boundary gap / Spark's own", against("boundary_gap_ms"), "<=", 1.0),
        Check("valid run: lowest rate kept, items/s", min(kept), ">=", KEPT_SHARE * CPU_RATE_PER_S),
        Check("valid run: worst source lag p99, ms", max(lags, default=None), "<=", VALID_LAG_MS),
        Check("items lost, duplicated or reordered", wrong, "==", 0),
    ]
    return Result("shuffle", figures, checks)


def _by_contestant(
    turns: Mapping[str, list[Answer]], figure: Callable[[Answer], float | None]
) -> dict[str, list[float]]:
    return {who: [value for turn in of if (value := figure(turn)) is not None] for who, of in turns.items()}


def _known(hops: list[Hop]) -> list[float]:
    return [hop.mean_ms for hop in hops if hop.mean_ms is not None]
