"""The benches by name. Imported only when asked for: most need Spark, some need the simulator."""

import importlib
from typing import cast

from penstock.bench.harness import Bench

BENCHES = {
    "latency": "penstock.bench.latency",
    "throughput": "penstock.bench.throughput",
    "cpu": "penstock.bench.cpu",
    "idle": "penstock.bench.idle",
    "overhead": "penstock.bench.overhead",
    "switch": "penstock.bench.switch",
    "boundary": "penstock.bench.boundary",
    "simulator": "penstock.bench.simulator",
    "policies": "penstock.bench.policies",
}


class UnknownBenchError(ValueError):
    """No bench of that name."""


def find(name: str) -> Bench:
    """The function `bench(effort)` of the bench's module."""
    if name not in BENCHES:
        raise UnknownBenchError(f"no bench is called {name!r}; there are {', '.join(BENCHES)}")
    return cast("Bench", importlib.import_module(BENCHES[name]).bench)
