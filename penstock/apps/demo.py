"""The demo: PrimeTest on real Spark for about a minute, with a live table, a summary and a picture.

There is no controller in it: the number of active testers follows the rate by a fixed rule, to show that
replicas are switched inside a batch.
"""

import math
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

import penstock
from penstock.apps.demo_view import Outcome, draw, live_table, summary_table
from penstock.apps.primetest import prime_flow, profile
from penstock.apps.tally import Interval, Tally, interval
from penstock.testing import Ledger
from penstock.testing.arrivals import Arrivals

BOUND_MS = 20.0
LIFETIME = "5 ms"
MOST_TESTERS = 4
ITEMS_PER_TESTER_PER_S = 7_000.0
OVERDUE_S = 5.0
LOOK_EVERY_S = 1.0


def testers_for(rate_per_s: float) -> int:
    """Active testers for a rate: as many as keep each below about half of what it can do."""
    return min(MOST_TESTERS, max(1, math.ceil(rate_per_s / ITEMS_PER_TESTER_PER_S)))


def demo(seconds: float, picture: Path, console: Console) -> Outcome:
    """Run it, show it, and return what it came to. Ctrl-C ends it early, in order."""
    schedule = profile(seconds)
    total = schedule.total_items or 0
    tally, intervals = Tally(), list[Interval]()
    with Ledger() as ledger:
        testers = penstock.elastic(1, MOST_TESTERS, initial=1, pool=MOST_TESTERS)
        flow = prime_flow(
            schedule, ledger, testers=testers, bound=BOUND_MS / 1000, window=LOOK_EVERY_S, lifetime=LIFETIME
        )
        console.print("starting Spark ...")
        job = penstock.run(flow)
        arrivals, active, last = Arrivals(ledger), 1, time.monotonic()
        zero_ns: int | None = None
        with Live(live_table([], BOUND_MS, 0, 0), console=console, auto_refresh=False) as live:
            try:
                while not job.await_termination(LOOK_EVERY_S):
                    entries, now = arrivals.new(), time.monotonic()
                    if zero_ns is None and len(entries):
                        zero_ns = int(entries.due_ns.min())
                    if zero_ns is None:
                        last = now
                        continue
                    tally.add(entries)
                    at_s = now - zero_ns * 1e-9
                    rate = schedule.rate_at(at_s)
                    span_s, last = now - last, now
                    intervals.append(
                        interval(entries, time_s=at_s, span_s=span_s, offered_per_s=rate, replicas=active)
                    )
                    if rate > 0 and testers_for(rate) != active:
                        active = testers_for(rate)
                        job.set_active("tester", active)
                    overdue = tally.missing(min(total, int(schedule.items_by(at_s - OVERDUE_S))))
                    live.update(live_table(intervals, BOUND_MS, overdue, tally.duplicated()), refresh=True)
            except KeyboardInterrupt:
                console.print("stopping: what is under way is brought to its end")
                job.stop()
            tally.add(arrivals.new())
        sent = job.metrics().tasks["numbers"].items_in
    outcome = Outcome(
        sent, tally.arrived, tally.primes, tally.missing(sent), tally.duplicated(), BOUND_MS, intervals
    )
    console.print(summary_table(outcome))
    if draw(outcome, picture):
        console.print(f"picture: {picture}", soft_wrap=True)
    else:
        console.print("no picture: matplotlib is missing; install penstock[report]")
    return outcome
