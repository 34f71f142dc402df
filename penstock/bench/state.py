"""What declared state costs: a keyed count in it against the same count in an attribute, in turn."""

import time
from typing import Any, Final

import penstock
from penstock import state
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median, ratio
from penstock.bench.windows import Window, window

KEYS: Final = 100_000
LIFETIME: Final = "20 ms"
OFFERED_PER_S: Final = 5_000_000.0  # more than can be taken: the source is always behind
RATE_PER_S: Final = 20_000.0
ENOUGH_PER_S: Final = 300_000.0
MOST_CPU: Final = 1.3
SLOTS: Final = 4
CONTESTANTS: Final = ("declared", "attribute")


def made(partition: int, index: int, seed: int) -> str:  # noqa: ARG001 - what a source is asked for
    """A key; consecutive ones are far apart."""
    return f"key {index * 7919 % KEYS}"


def itself(item: str) -> str:
    """The key of an item."""
    return item


class Declared:
    """Counts in declared state."""

    seen = state.value(0)

    def process(self, item: str, out: penstock.Out[int]) -> None:  # noqa: ARG002 - what a task is given
        """One more of its key."""
        self.seen += 1
        out(self.seen)


class Attribute:
    """Counts in a dictionary of its own, which no commit has."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def process(self, item: str, out: penstock.Out[int]) -> None:
        """One more of its key."""
        count = self.seen[item] = self.seen.get(item, 0) + 1
        out(count)


def drop(item: Any) -> None:
    """The trivial sink."""


def flow(contestant: str, rate_per_s: float) -> penstock.Flow:
    """source -> count by key -> drop, in envelopes of 20 ms."""
    chosen = penstock.Flow(f"count_{contestant}")
    keyed = chosen.source(penstock.paced(made, rate_per_s), name="items").batched(LIFETIME).by_key(itself)
    body: Any = Declared if contestant == "declared" else Attribute
    keyed.task(body, name="count").batched(LIFETIME).sink(drop, name="drop")
    return chosen


def bench(effort: Effort) -> Result:
    """Both in turn, at a rate that is kept (for CPU) and at one that is not (for items/s)."""
    turns, settle_s, window_s = (1, 4.0, 6.0) if effort is Effort.QUICK else (3, 8.0, 15.0)
    bench_session(SLOTS)
    taken: dict[str, dict[str, list[Window]]] = {
        load: {name: [] for name in CONTESTANTS} for load in ("kept", "offered")
    }
    for _ in range(turns):
        for load, rate_per_s in (("kept", RATE_PER_S), ("offered", OFFERED_PER_S)):
            for name in CONTESTANTS:
                job = penstock.run(flow(name, rate_per_s))
                time.sleep(settle_s)
                taken[load][name].append(window(job, window_s))
                job.stop()
    return summarise(taken)


def summarise(taken: dict[str, dict[str, list[Window]]]) -> Result:
    """CPU of all processes per item, and what two cores take at most."""
    costs = {
        name: [cost for one in windows if (cost := one.cpu_us_per_item) is not None]
        for name, windows in taken["kept"].items()
    }
    rates = {name: [one.items_per_s for one in windows] for name, windows in taken["offered"].items()}
    kept = [one.items_per_s for windows in taken["kept"].values() for one in windows]
    figures: dict[str, Any] = {"keys": KEYS, "lifetime": LIFETIME}
    for name in CONTESTANTS:
        figures[f"{name}_cpu_us_per_item"] = median(costs[name])
        figures[f"{name}_items_per_s"] = median(rates[name])
    figures |= {"turns_cpu_us_per_item": costs, "turns_items_per_s": rates}
    cpu_ratio = ratio(median(costs["declared"]), median(costs["attribute"]))
    checks = [
        Check("CPU per item, declared / attribute", cpu_ratio, "<=", MOST_CPU),
        Check("items/s of the count in declared state", median(rates["declared"]), ">=", ENOUGH_PER_S),
        Check("lowest rate kept, items/s", min(kept, default=None), ">=", 0.9 * RATE_PER_S),
    ]
    return Result("state", figures, checks)
