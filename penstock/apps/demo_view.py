"""How the demo looks: the live table, the summary, the picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from penstock.apps.tally import Interval
from penstock.report.colours import BLACK, BLUE, GREEN, GREY, ORANGE

SHOWN = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """The whole run."""

    items: int
    arrived: int
    primes: int
    lost: int
    duplicated: int
    bound_ms: float
    intervals: Sequence[Interval]

    def share_held(self) -> float | None:
        """Share of the intervals with arrivals in which the mean latency was within the bound."""
        verdicts = [one.held(self.bound_ms) for one in self.intervals]
        known = [verdict for verdict in verdicts if verdict is not None]
        return sum(known) / len(known) if known else None


def live_table(intervals: Sequence[Interval], bound_ms: float, missing: int, duplicated: int) -> Table:
    """The latest intervals, the newest last."""
    table = Table(
        title=f"PrimeTest on Spark real-time mode: mean latency of at most {bound_ms:g} ms",
        caption=f"overdue items: {missing}   duplicated items: {duplicated}",
        title_justify="left",
    )
    for heading in ("s", "offered/s", "arrived/s", "mean ms", "p95 ms", "p99 ms", "replicas", "constraint"):
        table.add_column(heading, justify="right")
    for one in intervals[-SHOWN:]:
        verdict = {True: "[green]held", False: "[red]missed", None: "-"}[one.held(bound_ms)]
        latencies = [_ms(value) for value in (one.mean_ms, one.p95_ms, one.p99_ms)]
        rates = [f"{one.offered_per_s:,.0f}", f"{one.arrived_per_s:,.0f}"]
        table.add_row(f"{one.time_s:.0f}", *rates, *latencies, str(one.replicas), verdict)
    return table


def summary_table(outcome: Outcome) -> Table:
    """What it came to."""
    table = Table("summary", "", show_header=False, title="PrimeTest: summary", title_justify="left")
    share = outcome.share_held()
    means = [one.mean_ms for one in outcome.intervals if one.mean_ms is not None]
    table.add_row("items", f"{outcome.items:,}")
    table.add_row("arrived", f"{outcome.arrived:,}")
    table.add_row("lost", str(outcome.lost))
    table.add_row("duplicated", str(outcome.duplicated))
    table.add_row("primes found", f"{outcome.primes:,}")
    table.add_row("seconds in which the constraint held", "-" if share is None else f"{share:.1%}")
    table.add_row(
        "median of the seconds' means", _ms(sorted(means)[len(means) // 2] if means else None) + " ms"
    )
    return table


def draw(outcome: Outcome, path: Path) -> bool:
    """Latency and rate over time, as a picture; False if there is nothing to draw it with."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogFormatter
    except ImportError:
        return False
    times = [one.time_s for one in outcome.intervals]
    figure = Figure(figsize=(9, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, style, shade, values in (
        ("mean", "-", BLUE, [one.mean_ms for one in outcome.intervals]),
        ("p95", "--", ORANGE, [one.p95_ms for one in outcome.intervals]),
        ("p99", ":", GREEN, [one.p99_ms for one in outcome.intervals]),
    ):
        known = [float("nan") if value is None else value for value in values]
        above.plot(times, known, style, color=shade, label=name)
    above.axhline(
        outcome.bound_ms, color=BLACK, linewidth=1, label=f"bound of the mean, {outcome.bound_ms:g} ms"
    )
    above.set(yscale="log", ylabel="latency from due time to sink [ms]")
    for axis_ticks in (above.yaxis.set_major_formatter, above.yaxis.set_minor_formatter):
        axis_ticks(LogFormatter(minor_thresholds=(2, 0.5)))
    below.plot(
        times, [one.offered_per_s for one in outcome.intervals], color=BLUE, linewidth=3, label="offered"
    )
    below.plot(times, [one.arrived_per_s for one in outcome.intervals], color=ORANGE, label="arrived")
    below.set(ylabel="items/s", xlabel="time [s]")
    replicas = below.twinx()
    replicas.step(
        times,
        [one.replicas for one in outcome.intervals],
        where="post",
        color=GREY,
        linestyle="--",
        label="testers",
    )
    replicas.set_ylabel("active testers (dashed)")
    replicas.set_yticks(range(max((one.replicas for one in outcome.intervals), default=0) + 2))
    for axes in (above, below):
        # Above the plot, where it hides nothing.
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, fontsize="small")
        axes.grid(visible=True, linewidth=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return True


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
