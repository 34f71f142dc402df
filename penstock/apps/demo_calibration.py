"""What this machine carries: a climb with all testers active, until the bound is missed.

The testers of the demo wait, as calls to a service do, so many of them fit on few cores; what fills the cores
is shipping. That depends on the machine and on the hour. So the demo first sends a rate that grows by a fifth
every second through all testers, and takes the highest rate that was held.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import penstock
from penstock.apps.primetest import prime_flow
from penstock.io.schedule import Schedule
from penstock.testing import Ledger
from penstock.testing.arrivals import Arrivals, Entries
from penstock.testing.arrivals import arrivals as arrivals_of

LIFETIME: Final = "5 ms"
WARM_UP_S, WARM_UP_PER_S = 7.0, 1_500.0
FIRST_PER_S, GROWTH, STEPS, STEP_S = 1_000.0, 1.2, 15, 1.0
HOPELESS: Final = 10.0  # times the bound: more of the climb would only take time
UNLIMITED_PER_S: Final = 4_000.0  # of a tester: it sleeps for every item, and is never what holds items up
LOOK_EVERY_S: Final = 0.25
NEEDED: Final = 8
BUSY: Final = 0.55
PEAK_SHARE: Final = 0.65
LOW_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Rates:
    """The load that suits a machine: at the peak `NEEDED` testers are busy about half the time."""

    capacity_per_s: float

    @property
    def high_per_s(self) -> float:
        """The peak."""
        return PEAK_SHARE * self.capacity_per_s

    @property
    def low_per_s(self) -> float:
        """Where the load begins and ends."""
        return LOW_SHARE * self.high_per_s

    @property
    def tester_per_s(self) -> float:
        """What one tester takes."""
        return self.high_per_s / (BUSY * NEEDED)


def climb() -> Schedule:
    """A warm-up for Java, then step by step."""
    rates = [FIRST_PER_S * GROWTH**step for step in range(STEPS)]
    return Schedule((WARM_UP_S, *[STEP_S] * STEPS), (WARM_UP_PER_S, *rates))


def calibrate(bound_ms: float, say: Callable[[float], None]) -> Rates:
    """Climb; `say` is told the rate of now."""
    schedule = climb()
    with Ledger() as ledger:
        flow = prime_flow(
            schedule,
            ledger,
            testers=NEEDED,
            bound=f"{bound_ms} ms",
            lifetime=LIFETIME,
            work="rate_limited",
            items_per_s=UNLIMITED_PER_S,
        )
        job = penstock.run(flow, policy=None)
        arrivals = Arrivals(ledger)
        zero_ns: int | None = None
        while not job.await_termination(LOOK_EVERY_S):
            new = arrivals.new()
            if not len(new):
                continue
            zero_ns = zero_ns or int(new.due_ns.min())
            at_s = (time.monotonic_ns() - zero_ns) * 1e-9
            say(schedule.rate_at(at_s))
            if at_s > WARM_UP_S and float(new.latency_ms().mean()) > HOPELESS * bound_ms:
                job.stop()
        entries = arrivals_of(ledger)
    return Rates(highest_held(entries, schedule, bound_ms))


def highest_held(entries: Entries, schedule: Schedule, bound_ms: float) -> float:
    """The highest rate whose items were within the bound on average; the lowest one if none was."""
    zero_ns = int(entries.due_ns.min())
    begins_s, held = WARM_UP_S, FIRST_PER_S
    for rate in schedule.rates_per_s[1:]:
        begin_ns = zero_ns + round(begins_s * 1e9)
        due = entries.due_between(begin_ns, begin_ns + round(STEP_S * 1e9))
        if len(due) and float(due.latency_ms().mean()) <= bound_ms:
            held = max(held, rate)
        begins_s += STEP_S
    return held
