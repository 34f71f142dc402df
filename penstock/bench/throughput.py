"""Items per second through a trivial task, shipped in envelopes of 20 ms against one by one."""

import time
from typing import Any

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median
from penstock.bench.windows import Window, lifetimes_in_turn

ENOUGH_PER_S = 500_000.0
FACTOR = 5.0
OFFERED_PER_S = 5_000_000.0  # more than can be taken: the source is always behind
SLOTS = 4
LIFETIMES = {"at_once": "0 ms", "after_20_ms": "20 ms"}


def made(partition: int, index: int, seed: int) -> bytes:  # noqa: ARG001 - what a source is asked for
    """32 bytes, all different: pickle would write equal objects only once."""
    return index.to_bytes(32, "big")


def same(item: Any) -> Any:
    """The trivial task."""
    return item


def drop(item: Any) -> None:
    """The trivial sink."""


def flow(rate_per_s: float) -> penstock.Flow:
    """source -> same -> drop."""
    chosen = penstock.Flow("trivial")
    items = chosen.source(penstock.paced(made, rate_per_s), name="items")
    items.map(same, name="same").sink(drop, name="drop")
    return chosen


def bench(effort: Effort) -> Result:
    """One job; the lifetime of its envelopes changes while it runs."""
    turns, settle_s, window_s = (1, 4.0, 8.0) if effort is Effort.QUICK else (3, 8.0, 15.0)
    bench_session(SLOTS)
    job = penstock.run(flow(OFFERED_PER_S))
    time.sleep(settle_s)
    windows = lifetimes_in_turn(job, LIFETIMES, turns=turns, settle_s=settle_s, window_s=window_s)
    job.stop()
    tasks = job.metrics().tasks
    lost = tasks["items"].items_in - tasks["drop"].items_in
    return summarise(windows, lost)


def summarise(windows: dict[str, list[Window]], lost: int) -> Result:
    """The bar is five times the rate without envelopes, or half a million a second if that is less."""
    rates = {name: [window.items_per_s for window in taken] for name, taken in windows.items()}
    at_once, batched = median(rates["at_once"]), median(rates["after_20_ms"])
    bar = ENOUGH_PER_S if at_once is None else min(ENOUGH_PER_S, FACTOR * at_once)
    figures = {
        "at_once_items_per_s": at_once,
        "after_20_ms_items_per_s": batched,
        "turns_items_per_s": rates,
    }
    checks = [Check("items/s at 20 ms", batched, ">=", bar), Check("items lost or duplicated", lost, "==", 0)]
    return Result("throughput", figures, checks)
