"""What a contestant of `penstock bench --against` runs: turns, asked for by name on its standard input.

It is run as a file, with the packages of the checkout whose engine it measures, so it imports only what every
version has. A turn is the quick form of a bench. That of `latency` leaves out what is not Penstock, and
starts each flow several times, for means over the starts: where its processes come to run differs from start
to start, and with it the median by a third.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result
from penstock.bench.latency import SLOTS, hops, task_and_sink
from penstock.bench.registry import find

ANSWER = "answer: "  # as own_session.py, which older checkouts do not have
LATENCY_S, LATENCY_WARM_UP_S = 4.0, 1.5
STARTS = 5
AVERAGED = ("p50_ms", "mean_ms", "p99_ms")


def latency() -> Result:
    """Penstock's own ways, in the figures that the bench has for them."""
    bench_session(SLOTS)
    ways: dict[str, Callable[[float, float], Any]] = {
        "penstock_1_hop": partial(hops, 1),
        "penstock_3_hops": partial(hops, 3),
        "penstock_task_and_sink": task_and_sink,
    }
    started = {name: [way(LATENCY_S, LATENCY_WARM_UP_S) for _ in range(STARTS)] for name, way in ways.items()}
    measured = [start for starts in started.values() for start in starts if start]
    checks = [
        Check("items lost", sum(start.lost for start in measured), "==", 0),
        Check("items duplicated", sum(start.duplicated for start in measured), "==", 0),
    ]
    return Result("latency", {"turns": {name: averages(starts) for name, starts in started.items()}}, checks)


def averages(starts: Sequence[Any]) -> dict[str, float | None]:
    """Over the starts; None if one of them has shown nothing."""
    known = [start for start in starts if start is not None]
    whole = len(known) == len(starts)
    return {name: fmean(getattr(start, name) for start in known) if whole else None for name in AVERAGED}


def turn(bench: str) -> Result:
    """One turn."""
    return latency() if bench == "latency" else find(bench)(Effort.QUICK)


if __name__ == "__main__":
    for line in sys.stdin:
        print(ANSWER + turn(line.strip()).to_json(), flush=True)
