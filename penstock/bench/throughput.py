"""Items per second: a trivial task in envelopes of 20 ms against one by one, lists of items, async calls."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median, ratio
from penstock.bench.in_order import InOrder, in_order
from penstock.bench.windows import Window, lifetimes_in_turn

ENOUGH_PER_S = 500_000.0
FACTOR = 5.0
BATCHES_FACTOR = 1.3
OFFERED_PER_S = 5_000_000.0  # more than can be taken: the source is always behind
SLOTS = 4
CALLS = 200
CALL_S = 0.01
ENOUGH_AWAITED_PER_S = 15_000.0  # of the 20,000 that so many calls of that length could be at most
LIFETIMES = {"at_once": "0 ms", "after_20_ms": "20 ms"}


def made(partition: int, index: int, seed: int) -> bytes:  # noqa: ARG001 - what a source is asked for
    """32 bytes, all different: pickle would write equal objects only once."""
    return index.to_bytes(32, "big")


def same(item: Any) -> Any:
    """The trivial task."""
    return item


def same_of_all(items: list[Any]) -> list[Any]:
    """The same for a list."""
    return items


def drop(item: Any) -> None:
    """The trivial sink."""


def flow(rate_per_s: float, sink: Any = drop, *, in_batches: bool = False) -> penstock.Flow:
    """source -> same -> drop."""
    chosen = penstock.Flow("trivial")
    items = chosen.source(penstock.paced(made, rate_per_s), name="items")
    task = items.map_batches(same_of_all, name="same") if in_batches else items.map(same, name="same")
    task.sink(sink, name="drop")
    return chosen


async def wait(item: Any) -> Any:
    """The async task: nothing but a wait."""
    await asyncio.sleep(CALL_S)
    return item


def awaiting_flow(rate_per_s: float, sink: Any = drop) -> penstock.Flow:
    """source -> wait -> drop, in envelopes of 20 ms."""
    chosen = penstock.Flow("awaiting")
    items = chosen.source(penstock.paced(made, rate_per_s), name="items").batched("20 ms")
    items.map(wait, name="wait", concurrency=CALLS).batched("20 ms").sink(sink, name="drop")
    return chosen


def bench(effort: Effort) -> Result:
    """Three jobs, one after the other; the lifetime of envelopes of the first changes while it runs."""
    bench_session(SLOTS)
    windows, wrong = _taken(flow, LIFETIMES, effort)
    batches, wrong_in_batches = _taken(
        partial(flow, in_batches=True), {"batches": LIFETIMES["after_20_ms"]}, effort
    )
    calls, wrong_of_calls = _taken(awaiting_flow, {"awaited": LIFETIMES["after_20_ms"]}, effort)
    return summarise({**windows, **batches, **calls}, wrong + wrong_in_batches + wrong_of_calls)


def _taken(
    flow_into: Callable[[float, InOrder], penstock.Flow], lifetimes: Mapping[str, str], effort: Effort
) -> tuple[dict[str, list[Window]], int]:
    """The windows of a job, and how many items were lost, doubled or reordered."""
    turns, settle_s, window_s = (1, 4.0, 8.0) if effort is Effort.QUICK else (3, 8.0, 15.0)
    with in_order() as sink:
        job = penstock.run(flow_into(OFFERED_PER_S, sink))
        time.sleep(settle_s)
        windows = lifetimes_in_turn(job, lifetimes, turns=turns, settle_s=settle_s, window_s=window_s)
        job.stop()
        return windows, sink.wrong(job, "items", "drop")


def summarise(windows: dict[str, list[Window]], wrong: int) -> Result:
    """The bar is five times the rate without envelopes, or half a million a second if that is less.

    That of the async task is three quarters of what its calls could do if nothing else took any time.
    """
    rates = {name: [window.items_per_s for window in taken] for name, taken in windows.items()}
    at_once, batched, lists = (median(rates[name]) for name in ("at_once", "after_20_ms", "batches"))
    awaited = median(rates["awaited"])
    bar = ENOUGH_PER_S if at_once is None else min(ENOUGH_PER_S, FACTOR * at_once)
    figures = {
        "at_once_items_per_s": at_once,
        "after_20_ms_items_per_s": batched,
        "batches_items_per_s": lists,
        "awaited_items_per_s": awaited,
        "turns_items_per_s": rates,
    }
    checks = [
        Check("items/s at 20 ms", batched, ">=", bar),
        Check("items/s of map_batches / map, 20 ms", ratio(lists, batched), ">=", BATCHES_FACTOR),
        Check(f"items/s with {CALLS} calls at once", awaited, ">=", ENOUGH_AWAITED_PER_S),
        Check("items lost, duplicated or reordered", wrong, "==", 0),
    ]
    return Result("throughput", figures, checks)
