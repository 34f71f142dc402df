"""The demo: PrimeTest on real Spark under its controller for about a minute.

The load climbs to ten times its rate and falls again; `nephele` decides once a second how many testers there
are and how long items are batched. A tester waits while it works, as one does that asks a service.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.live import Live

import penstock
from penstock.apps.demo_calibration import LIFETIME, NEEDED, Rates, calibrate
from penstock.apps.demo_view import Outcome, draw, live_view, second_line, summary_table
from penstock.apps.primetest import prime_flow, profile
from penstock.apps.tally import OVERDUE_S, Tally
from penstock.dashboard.server import dashboard_address
from penstock.io.schedule import Schedule
from penstock.processes import cpu_s
from penstock.testing import Ledger
from penstock.testing.arrivals import Arrivals

BOUND_MS: Final = 20.0
INTERVAL: Final = "1 s"
# A day in a minute, judged second by second: a second has fewer samples than five have, and replicas that are
# enough for five seconds are enough.
POLICY: Final = "nephele"
SETTINGS: Final = (
    "nephele.bound_share=0.7",
    "guards.scale_down_window_s=5",
    "guards.scale_down_shown_window_s=2",
)
FIRST: Final = 2
LOOK_EVERY_S: Final = 1.0
TASK: Final = "tester"


@dataclass
class Watch:
    """Looks at a run once a second: who arrived, how many testers there are, how many cores are used."""

    job: "penstock.Job"
    schedule: Schedule
    arrivals: Arrivals
    tally: Tally = field(default_factory=Tally)
    replicas: list[int] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    _cpu_s: float = field(default_factory=cpu_s)
    _at_s: float = field(default_factory=time.monotonic)

    def look(self) -> bool:
        """Whether another second of the run is over."""
        self.tally.add(self.arrivals.new())
        if self.tally.zero_ns is None:
            return False
        over = int(self.run_s())
        used_s, now_s = cpu_s(), time.monotonic()
        cores = (used_s - self._cpu_s) / max(1e-9, now_s - self._at_s)
        if over <= len(self.replicas) or over > self.schedule.starts_s[-1]:
            return False
        self._cpu_s, self._at_s = used_s, now_s
        missing = over - len(self.replicas)
        self.replicas += [self.job.metrics().tasks[TASK].active] * missing
        self.cores += [cores] * missing
        return True

    def run_s(self) -> float:
        """Seconds since the first item was due."""
        zero_ns = self.tally.zero_ns
        return 0.0 if zero_ns is None else (time.monotonic_ns() - zero_ns) * 1e-9

    def overdue(self) -> int:
        """Items that were due some seconds ago and are not there."""
        due = int(self.schedule.items_by(self.run_s() - OVERDUE_S))
        return self.tally.missing(min(self.schedule.total_items or 0, due))

    def outcome(self, rates: Rates, sent: int) -> Outcome:
        """The run so far; the last second may still change."""
        seconds = [
            self.tally.second(number, self.schedule.rate_at(number + 0.5))
            for number in range(len(self.replicas))
        ]
        return Outcome(
            bound_ms=BOUND_MS,
            capacity_per_s=rates.capacity_per_s,
            static=NEEDED,
            items=sent,
            lost=self.tally.missing(sent),
            duplicated=self.tally.duplicated(),
            seconds=seconds,
            replicas=list(self.replicas),
            cores=list(self.cores),
            decisions=self.job.decisions(),
            zero_s=time.time() - self.run_s(),
        )


def demo(
    seconds: float,
    picture: Path,
    console: Console,
    rates: Rates | None = None,
    *,
    dashboard: str | int | None = None,
) -> Outcome:
    """Run it, show it, and return what it came to; Ctrl-C ends it early, in order.

    Without `rates` those that suit this machine are found out first.
    """
    if dashboard is not None:
        dashboard_address(dashboard)  # what is wrong is told before the machine is tried
    console.print("starting Spark, and finding out what this machine carries ...")
    if rates is None:
        with console.status("") as status:
            rates = calibrate(BOUND_MS, lambda rate: status.update(f"{rate:,.0f} items/s"))
    console.print(
        f"{rates.capacity_per_s:,.0f} items/s within {BOUND_MS:g} ms with {NEEDED} testers; the load climbs"
        f" from {rates.low_per_s:,.0f} to {rates.high_per_s:,.0f}; a tester takes {rates.tester_per_s:,.0f}",
        highlight=False,
    )
    schedule = profile(seconds, rates.low_per_s, rates.high_per_s)
    with Ledger() as ledger:
        flow = prime_flow(
            schedule,
            ledger,
            testers=penstock.elastic(1, NEEDED, initial=FIRST, pool=NEEDED),
            bound=f"{BOUND_MS} ms",
            window=LOOK_EVERY_S,
            lifetime=LIFETIME,
            work="rate_limited",
            items_per_s=rates.tester_per_s,
        )
        job = penstock.run(flow, policy=POLICY, settings=SETTINGS, interval=INTERVAL, dashboard=dashboard)
        if job.dashboard_url is not None:
            console.print(f"dashboard at {job.dashboard_url}", markup=False, soft_wrap=True)
        watch = Watch(job, schedule, Arrivals(ledger))
        try:
            _show(watch, rates, console)
        except KeyboardInterrupt:
            console.print("stopping: what is under way is brought to its end")
            job.stop()
        watch.tally.add(watch.arrivals.new())
        outcome = watch.outcome(rates, job.metrics().tasks["numbers"].items_in)
    console.print(summary_table(outcome))
    if draw(outcome, picture):
        console.print(f"picture: {picture}", soft_wrap=True)
    else:
        console.print("no picture: matplotlib is missing; install penstock[report]")
    return outcome


def _show(watch: Watch, rates: Rates, console: Console) -> None:
    """A table that is drawn anew each second; lines where there is no screen."""
    with Live(console=console, auto_refresh=False) as live:
        told = 0
        while not watch.job.await_termination(LOOK_EVERY_S / 4):
            if not watch.look():
                continue
            so_far = watch.outcome(rates, 0)
            if console.is_terminal:
                live.update(live_view(so_far, watch.overdue()), refresh=True)
            else:
                told = second_line(so_far, told, console)
