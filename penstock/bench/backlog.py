"""A task that is behind is scaled up: how long until latency is as usual, balanced and in plain turns.

It sleeps 4 ms for an item and gets more than one replica can do for some seconds; then it has four. What
waits stays at the first of them. In plain turns that one gets its part of the new items on top, and these
wait behind what is there; balanced ones pass it over until it has caught up.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result, median, ratio
from penstock.bench.switch import Through
from penstock.bench.telling import turns
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import Entries, arrivals
from penstock.testing.ledger import Stamped

RATE_PER_S: Final = 500.0
SERVICE_S: Final = 0.004
REPLICAS: Final = 4
BEHIND_S: Final = 3.0
"""From the first arrival until there are more replicas."""
USUAL_MS: Final = 50.0
"""Ten times what an item takes where none waits."""
LATE_SHARE: Final = 0.1
WINDOW_S: Final = 0.25
CALM_WINDOWS: Final = 4
LOOKED_AT_S: Final = 20.0
SLOTS: Final = REPLICAS + 2
PLAIN, BALANCED = "plain", "balanced"


class Slow(Through):
    """Takes its time, and marks every item with the replica it came through."""

    def process(self, item: Stamped, out: penstock.Out[Stamped]) -> None:
        """Without using the processor."""
        time.sleep(SERVICE_S)
        super().process(item, out)


@dataclass(frozen=True, slots=True)
class Turn:
    """One run: when there were more replicas, all that arrived, and how many were sent."""

    scaled_ns: int
    entries: Entries
    expected: int

    def worked_off_s(self) -> float | None:
        """From the call until a second in none of whose windows many items were late; None if there is none.

        Later ones may be late again, for whatever else the machine does.
        """
        since_s = (self.entries.arrived_ns - self.scaled_ns) * 1e-9
        windows = numpy.floor(since_s / WINDOW_S).astype(int)
        late = self.entries.latency_ms() > USUAL_MS
        seen = [window for window in numpy.unique(windows) if window >= 0]
        is_behind = [late[windows == window].mean() > LATE_SHARE for window in seen]
        for number, window in enumerate(seen[: 1 - CALM_WINDOWS]):
            if not any(is_behind[number : number + CALM_WINDOWS]):
                return float(window) * WINDOW_S
        return None

    def late_after(self) -> float | None:
        """The share of the items that were due after the call, and late; None if none was due."""
        after = self.entries.where(self.entries.due_ns >= self.scaled_ns).latency_ms()
        return float((after > USUAL_MS).mean()) if len(after) else None


def turn(way: str) -> Turn:
    """1 -> 4 active replicas, inside the first batch."""
    with Ledger() as ledger:
        flow = penstock.Flow("backlog")
        items = flow.source(penstock.paced(stamped, RATE_PER_S), name="items")
        wired = items.balanced() if way == BALANCED else items.round_robin()
        pool = penstock.elastic(1, REPLICAS, initial=1, pool=REPLICAS)
        wired.task(Slow, name="slow", parallelism=pool).sink(ledger, name="ledger")
        job = penstock.run(flow)
        while not len(arrivals(ledger)) and not job.await_end(WINDOW_S / 10):
            pass
        time.sleep(BEHIND_S)
        scaled_ns = time.monotonic_ns()
        job.set_active("slow", REPLICAS)
        time.sleep(LOOKED_AT_S)
        job.stop()
        return Turn(scaled_ns, arrivals(ledger), job.metrics().tasks["items"].items_in)


def bench(effort: Effort) -> Result:
    """Whoever goes first in one turn goes last in the next."""
    bench_session(SLOTS)
    taken: dict[str, list[Turn]] = {PLAIN: [], BALANCED: []}
    for number in turns(1 if effort is Effort.QUICK else 3):
        for way in (PLAIN, BALANCED) if number % 2 == 0 else (BALANCED, PLAIN):
            taken[way].append(turn(way))
    return summarise(taken)


def summarise(taken: Mapping[str, Sequence[Turn]]) -> Result:
    """Medians of the turns; how much sooner it is has no bar but that it is."""
    worked_off = {way: [one.worked_off_s() for one in of] for way, of in taken.items()}
    late = {way: [one.late_after() for one in of] for way, of in taken.items()}
    known = {way: [value for value in of if value is not None] for way, of in worked_off.items()}
    whole = all(len(known[way]) == len(of) for way, of in taken.items())
    against = ratio(median(known[BALANCED]), median(known[PLAIN])) if whole else None
    everything = [one for of in taken.values() for one in of]
    figures: dict[str, Any] = {
        "items_per_s": RATE_PER_S,
        "worked_off_s": worked_off,
        "late_share_of_items_due_after": late,
    }
    checks = [
        Check("worked off, balanced / plain turns", against, "<", 1),
        Check("items lost", sum(one.entries.lost({0: one.expected}) for one in everything), "==", 0),
        Check("items duplicated", sum(one.entries.duplicated() for one in everything), "==", 0),
        Check(
            "items reordered in a channel",
            sum(one.entries.reordered_by_mark() for one in everything),
            "==",
            0,
        ),
    ]
    return Result("backlog", figures, checks)
