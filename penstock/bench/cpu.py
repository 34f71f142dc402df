"""CPU per item at 10,000 items/s: envelopes of 100 ms against items one by one, a batch and an async task."""

import time

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median, ratio
from penstock.bench.throughput import awaiting_flow, flow
from penstock.bench.windows import Window, lifetimes_in_turn

RATE_PER_S = 10_000.0
SLOTS = 4
LIFETIMES = {"at_once": "0 ms", "after_100_ms": "100 ms"}


def bench(effort: Effort) -> Result:
    """Three jobs, one after the other; CPU of all they consist of: driver, Spark's JVM, workers."""
    turns, settle_s, window_s = (1, 4.0, 8.0) if effort is Effort.QUICK else (3, 8.0, 15.0)
    bench_session(SLOTS)
    windows: dict[str, list[Window]] = {}
    late = LIFETIMES["after_100_ms"]
    for chosen, lifetimes in (
        (flow(RATE_PER_S), LIFETIMES),
        (flow(RATE_PER_S, in_batches=True), {"batches": late}),
        (awaiting_flow(RATE_PER_S), {"awaited": late}),
    ):
        job = penstock.run(chosen)
        time.sleep(settle_s)
        windows |= lifetimes_in_turn(job, lifetimes, turns=turns, settle_s=settle_s, window_s=window_s)
        job.stop()
    return summarise(windows)


def summarise(windows: dict[str, list[Window]]) -> Result:
    """Only windows that kept the rate say something about the cost of an item at that rate."""
    costs = {
        name: [window.cpu_us_per_item for window in taken if window.cpu_us_per_item is not None]
        for name, taken in windows.items()
    }
    rates = [window.items_per_s for taken in windows.values() for window in taken]
    at_once, batched = median(costs["at_once"]), median(costs["after_100_ms"])
    figures = {
        "at_once_cpu_us_per_item": at_once,
        "after_100_ms_cpu_us_per_item": batched,
        "batches_cpu_us_per_item": median(costs["batches"]),
        "awaited_cpu_us_per_item": median(costs["awaited"]),
        "turns_cpu_us_per_item": costs,
        "turns_items_per_s": rates,
    }
    checks = [
        Check("CPU per item, 100 ms / at once", ratio(batched, at_once), "<=", 1 / 3),
        Check("lowest rate kept, items/s", min(rates, default=None), ">=", 0.9 * RATE_PER_S),
    ]
    return Result("cpu", figures, checks)
