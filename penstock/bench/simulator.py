"""How fast PrimeTest at paper scale is simulated, in how much memory, and how exactly.

Speed is items per second of CPU time: the simulator uses one core, and on a machine with other work the wall
clock measures them too (it is reported beside). Memory is the growth of the process after the first part.
"""

import resource
import time
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.bench.harness import Check, Effort, Result
from penstock.policy.nephele import Nephele
from penstock.sim.distributions import Deterministic, Distribution, Exponential, Gamma
from penstock.sim.lindley import single_server
from penstock.sim.memory import keep_freed_memory
from penstock.sim.run import Point, simulate
from penstock.sim.workloads import primetest

_MEGA = 1e6


def bench(effort: Effort) -> Result:
    """Figures and checks."""
    keep_freed_memory()
    quick = effort is Effort.QUICK
    speed = _speed(step_s=5.0 if quick else 60.0)
    errors = {
        name: _waiting_time_error(service, customers=1_000_000 if quick else 8_000_000)
        for name, service in (("mm1", Exponential()), ("md1", Deterministic()), ("mg1", Gamma(2.0)))
    }
    figures = {**speed, "waiting_time_relative_error": errors}
    checks = [
        Check("items_per_cpu_s", speed["items_per_cpu_s"], ">=", 5 * _MEGA),
        Check("memory_growth_mb", speed["memory_growth_mb"], "<=", 100.0),
    ]
    # A quick run has too few customers for 2 %: its own standard error is about as large.
    bar = 0.1 if quick else 0.02
    checks += [Check(f"{name}_waiting_time_error", error, "<=", bar) for name, error in errors.items()]
    return Result("simulator", figures, checks)


def _speed(step_s: float) -> dict[str, Any]:
    """PrimeTest at paper scale under nephele; with shorter steps there is less of it, at the same rates."""
    flow = primetest.elastic(step_s=step_s)
    memory_mb: list[float] = []
    marks: list[tuple[float, float]] = []

    def each(point: Point) -> None:
        memory_mb.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0)
        marks.append((time.process_time(), point.emitted_per_s * (point.end_s - point.begin_s)))

    begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
    run = simulate(flow, Nephele(), seed=1, each=each)
    cpu_s, wall_s = time.process_time() - begin_cpu_s, time.perf_counter() - begin_s
    rates = [items / (after - before) for (before, _), (after, items) in pairwise(marks)]
    half = len(memory_mb) // 2
    return {
        "items": run.items,
        "simulated_s": run.points[-1].end_s,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "items_per_cpu_s": run.items / cpu_s,
        "items_per_wall_s": run.items / wall_s,
        "items_per_cpu_s_slowest_interval": min(rates),
        "memory_mb": memory_mb[-1],
        "memory_growth_mb": memory_mb[-1] - memory_mb[half],
    }


def _waiting_time_error(service: Distribution, customers: int, load: float = 0.8) -> float:
    """Relative error of the mean wait of M/G/1 against Pollaczek and Khinchine's formula.

    W = load x service x (1 + scv) / (2 (1 - load)).
    """
    rng = np.random.Generator(np.random.SFC64(7))
    arrival = np.cumsum(rng.standard_exponential(customers) / load)
    wait = single_server(arrival, service.sample(rng, customers)) - arrival
    theory = load * (1.0 + service.scv) / (2.0 * (1.0 - load))
    return abs(float(wait.mean()) / theory - 1.0)
