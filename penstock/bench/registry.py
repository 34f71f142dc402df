"""The benches by name. Imported only when asked for: most need Spark, some need the simulator."""

import importlib
from collections.abc import Sequence
from functools import partial
from typing import cast

from penstock.bench.harness import Bench

BENCHES = {
    "latency": "penstock.bench.latency",
    "throughput": "penstock.bench.throughput",
    "cpu": "penstock.bench.cpu",
    "codecs": "penstock.bench.codecs",
    "idle": "penstock.bench.idle",
    "overhead": "penstock.bench.overhead",
    "switch": "penstock.bench.switch",
    "backlog": "penstock.bench.backlog",
    "boundary": "penstock.bench.boundary",
    "shuffle": "penstock.bench.shuffle",
    "commits": "penstock.bench.commits",
    "state": "penstock.bench.state",
    "commit": "penstock.bench.commit",
    "skew": "penstock.bench.skew",
    "simulator": "penstock.bench.simulator",
    "policies": "penstock.bench.policies",
    "control": "penstock.bench.control",
    "ablation": "penstock.bench.ablation",
    "kafka": "penstock.bench.kafka",
    "peers": "penstock.bench.peers",
}


WITH_EXPERIMENTS = ("control", "ablation", "kafka", "peers", "state", "commit")
"""Benches whose experiments can be run alone."""


class UnknownBenchError(ValueError):
    """No bench, or no experiment of a bench, of that name."""


def find(name: str, only: Sequence[str] = ()) -> Bench:
    """The function `bench(effort)` of the bench's module, for some of its experiments if they are named."""
    if name not in BENCHES:
        raise UnknownBenchError(f"no bench is called {name!r}; there are {', '.join(BENCHES)}")
    module = importlib.import_module(BENCHES[name])
    if not only:
        return cast("Bench", module.bench)
    experiments = tuple(getattr(module, "EXPERIMENTS", ())) if name in WITH_EXPERIMENTS else ()
    unknown = [wanted for wanted in only if wanted not in experiments]
    if unknown:
        has = f"it has {', '.join(experiments)}" if experiments else "it runs as a whole only"
        raise UnknownBenchError(f"bench {name!r} has no experiment {unknown[0]!r}; {has}")
    return partial(module.bench, only=tuple(only))
