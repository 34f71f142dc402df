"""What a contestant of `penstock bench --against` runs: turns, asked for by name on its standard input.

It is run as a file, with the packages of the checkout whose engine it measures, so it imports only what every
version has. A turn is the quick form of a bench. That of `latency` leaves out what is not Penstock, and
starts each flow three times: where its processes come to run differs from start to start, and with it the
median by a third.
"""

import sys
from dataclasses import asdict

from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result
from penstock.bench.latency import SLOTS, hops, task_and_sink
from penstock.bench.registry import find

ANSWER = "answer: "  # as own_session.py, which older checkouts do not have
LATENCY_S, LATENCY_WARM_UP_S, LATENCY_STARTS = 7.0, 3.0, 3


def latency() -> Result:
    """Penstock's own ways, in the figures that the bench has for them."""
    bench_session(SLOTS)
    starts = [
        {
            "penstock_1_hop": hops(1, LATENCY_S, LATENCY_WARM_UP_S),
            "penstock_3_hops": hops(3, LATENCY_S, LATENCY_WARM_UP_S),
            "penstock_task_and_sink": task_and_sink(LATENCY_S, LATENCY_WARM_UP_S),
        }
        for _ in range(LATENCY_STARTS)
    ]
    measured = [way for start in starts for way in start.values() if way]
    turns = {name: [(way := start[name]) and asdict(way) for start in starts] for name in starts[0]}
    checks = [
        Check("items lost", sum(way.lost for way in measured), "==", 0),
        Check("items duplicated", sum(way.duplicated for way in measured), "==", 0),
    ]
    return Result("latency", {"turns": turns}, checks)


def turn(bench: str) -> Result:
    """One turn."""
    return latency() if bench == "latency" else find(bench)(Effort.QUICK)


if __name__ == "__main__":
    for line in sys.stdin:
        print(ANSWER + turn(line.strip()).to_json(), flush=True)
