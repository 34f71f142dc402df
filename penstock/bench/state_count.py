"""What declared state costs: a keyed count in it, with and without commits, against one in an attribute."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.beside import Beside
from penstock.bench.harness import Check, Effort, median, median_ratio
from penstock.bench.keyed import KEYS, LIFETIME, Attribute, Declared, drop, itself, made
from penstock.bench.telling import tell, turns
from penstock.bench.windows import Window, window
from penstock.processes import pss_mb
from penstock.spark.job import Job

OFFERED_PER_S: Final = 5_000_000.0  # more than can be taken: the source is always behind
RATE_PER_S: Final = 20_000.0
ENOUGH_PER_S: Final = 300_000.0
MOST_CPU: Final = 1.3
SLOTS: Final = 8
COMMITTED, DECLARED, ATTRIBUTE = "committed", "declared", "attribute"
CONTESTANTS: Final = (COMMITTED, DECLARED, ATTRIBUTE)
"""Declared state with a commit by an epoch mark each second; the same without commits; none declared."""


@dataclass(frozen=True, slots=True)
class Length:
    """How many turns, what of each is cut off, and how long the look after it is."""

    turns: int
    settle_s: float
    window_s: float


LENGTHS: Final = {Effort.QUICK: Length(1, 3.0, 5.0), Effort.FULL: Length(6, 8.0, 15.0)}
OFFERED_TURNS: Final = 3
"""At most: items/s scatter less."""


@dataclass(frozen=True, slots=True)
class Asked:
    """For a look."""

    name: str
    rate_per_s: float
    length: Length


@dataclass(frozen=True, slots=True)
class Look:
    """At a contestant, and what its count takes of memory for a key."""

    window: Window
    bytes_per_key: float | None = None


Looks = Mapping[str, Mapping[str, Sequence[Look]]]


def flow(contestant: str, rate_per_s: float) -> penstock.Flow:
    """source -> count by key -> drop, in envelopes of 20 ms."""
    chosen = penstock.Flow(f"count_{contestant}")
    keyed = chosen.source(penstock.paced(made, rate_per_s), name="items").batched(LIFETIME).by_key(itself)
    body: Any = Attribute if contestant == ATTRIBUTE else Declared
    keyed.task(body, name="count").batched(LIFETIME).sink(drop, name="drop")
    return chosen


def count(effort: Effort) -> tuple[dict[str, Any], list[Check]]:
    """At a rate that is kept (for CPU) side by side, at one that is not (for items/s) in turn."""
    length = LENGTHS[effort]
    taken: dict[str, dict[str, list[Look]]] = {
        load: {name: [] for name in CONTESTANTS} for load in ("kept", "offered")
    }
    with Beside(looked, len(CONTESTANTS)) as all_of_them:
        for number in turns(length.turns):
            first = number % len(CONTESTANTS)
            names = CONTESTANTS[first:] + CONTESTANTS[:first]
            tell(f"  count, side by side, {RATE_PER_S:,.0f} items/s")
            found = all_of_them.at_once([Asked(name, RATE_PER_S, length) for name in names])
            for name, one in zip(names, found, strict=True):
                taken["kept"][name].append(one)
            for name in names if number < OFFERED_TURNS else ():
                tell(f"  count, {name}, {OFFERED_PER_S:,.0f} items/s")
                taken["offered"][name].append(all_of_them.alone(Asked(name, OFFERED_PER_S, length)))
    return summarise(taken)


def looked(asked: Asked) -> Look:
    """In a process of its own."""
    bench_session(SLOTS)
    return look(asked.name, asked.rate_per_s, asked.length)


def look(name: str, rate_per_s: float, length: Length) -> Look:
    """One turn of a contestant."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
        checkpoint, commit = (place, "1 s") if name == COMMITTED else (None, None)
        job = penstock.run(flow(name, rate_per_s), checkpoint=checkpoint, commit=commit, policy=None)
        if job.await_end(length.settle_s):
            raise RuntimeError(f"the flow has ended: {job.exception()}")
        found = Look(window(job, length.window_s), bytes_per_key(job, KEYS))
        job.stop()
    return found


def bytes_per_key(job: Job, keys: int, task: str = "count", beside: str = "drop") -> float | None:
    """Memory of the processes of a task, less that of as many of another one that keeps nothing."""
    tasks = job.metrics().tasks
    own = [pss_mb(pid) for pid in tasks[task].processes]
    known, others = (
        [size for size in sizes if size is not None]
        for sizes in (own, [pss_mb(pid) for pid in tasks[beside].processes])
    )
    if not own or len(known) < len(own) or not others:
        return None
    return (sum(known) - len(known) * max(others)) * 2**20 / keys


def summarise(taken: Looks) -> tuple[dict[str, Any], list[Check]]:
    """CPU of all processes per item, and what two cores take at most."""
    costs = {name: [one.window.cpu_us_per_item for one in looks] for name, looks in taken["kept"].items()}
    rates = {name: [one.window.items_per_s for one in looks] for name, looks in taken["offered"].items()}
    memory = {
        name: [one.bytes_per_key for one in looks if one.bytes_per_key is not None]
        for name, looks in taken["kept"].items()
    }
    kept = [one.window.items_per_s for looks in taken["kept"].values() for one in looks]
    figures: dict[str, Any] = {"keys": KEYS, "lifetime": LIFETIME, "kept_items_per_s": RATE_PER_S}
    for name in CONTESTANTS:
        figures[name] = {
            "cpu_us_per_item": costs[name],
            "highest_items_per_s": rates[name],
            "memory_bytes_per_key": memory[name],
        }
    checks = [Check("lowest rate kept, items/s", min(kept, default=None), ">=", 0.9 * RATE_PER_S)]
    for name, words in ((COMMITTED, "committed each second"), (DECLARED, "without commits")):
        less = median_ratio(costs[name], costs[ATTRIBUTE])
        checks += [
            Check(f"CPU per item, declared, {words} / attribute", less, "<=", MOST_CPU),
            Check(f"items/s, declared, {words}", median(rates[name]), ">=", ENOUGH_PER_S),
        ]
    return figures, checks
