"""What replicas cost that are only held ready: a pool of 32 with one active, against a pool of 1."""

import time
from dataclasses import dataclass

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median
from penstock.bench.throughput import drop, made, same
from penstock.bench.windows import window
from penstock.processes import pss_mb

RATE_PER_S = 10.0
LARGE = 32
SLOTS = LARGE + 2


@dataclass(frozen=True, slots=True)
class Turn:
    """One run with a pool of some size."""

    cores: float
    processes: int
    worker_pss_mb: float | None


def turn(pool: int, settle_s: float, window_s: float) -> Turn:
    """Run a flow whose task has that pool and one active replica."""
    flow = penstock.Flow("idle")
    items = flow.source(penstock.paced(made, RATE_PER_S), name="items")
    parallelism = penstock.elastic(1, LARGE, initial=1, pool=pool)
    items.map(same, name="same", parallelism=parallelism).sink(drop, name="drop")
    job = penstock.run(flow)
    try:
        time.sleep(settle_s)
        seen = window(job, window_s)
        workers = job.metrics().tasks["same"].processes
        return Turn(seen.cores, len(workers), pss_mb(workers[0]) if workers else None)
    finally:
        job.stop()


def bench(effort: Effort) -> Result:
    """Pools in turn; the first two runs only warm up."""
    turns, settle_s, window_s = (1, 5.0, 7.0) if effort is Effort.QUICK else (3, 10.0, 20.0)
    bench_session(SLOTS)
    for pool in (1, LARGE):
        turn(pool, 2.0, 1.0)
    small, large = [], []
    for _ in range(turns):
        small.append(turn(1, settle_s, window_s))
        large.append(turn(LARGE, settle_s, window_s))
    return summarise(small, large)


def summarise(small: list[Turn], large: list[Turn]) -> Result:
    """The difference is that of the medians."""
    cores_small, cores_large = median([one.cores for one in small]), median([one.cores for one in large])
    more = None if cores_small is None or cores_large is None else cores_large - cores_small
    sizes = [one.worker_pss_mb for one in (*small, *large) if one.worker_pss_mb is not None]
    figures = {
        "pool_of_1_cores": cores_small,
        "pool_of_32_cores": cores_large,
        "turns_pool_of_1_cores": [one.cores for one in small],
        "turns_pool_of_32_cores": [one.cores for one in large],
        "turns_worker_pss_mb": sizes,
    }
    checks = [
        Check("processes of a pool of 32 with one active", max(one.processes for one in large), "==", 1),
        Check("cores more than a pool of 1", more, "<", 0.05),
        Check("largest worker, PSS in MB", max(sizes, default=None), "<=", 25.0),
    ]
    return Result("idle", figures, checks)
