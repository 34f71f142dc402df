"""How the demo looks: the live table with its decisions, the summary, the picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.apps.tally import Second
from penstock.control.decision_log import Entry
from penstock.report.colours import BLACK, BLUE, GREEN, GREY, ORANGE, VIOLATED

SHOWN_SECONDS = 12
SHOWN_DECISIONS = 5
_MOVED = 0.25


@dataclass(frozen=True, slots=True)
class Outcome:
    """The whole run; `replicas` and `cores` are those of each second, `static` is what the peak needs."""

    bound_ms: float
    capacity_per_s: float
    static: int
    items: int
    lost: int
    duplicated: int
    seconds: Sequence[Second]
    replicas: Sequence[int]
    cores: Sequence[float]
    decisions: Sequence[Entry]
    zero_s: float

    def share_held(self) -> float | None:
        """Share of the seconds with items in which the mean latency was within the bound."""
        verdicts = [one.held(self.bound_ms) for one in self.seconds]
        known = [verdict for verdict in verdicts if verdict is not None]
        return sum(known) / len(known) if known else None

    def share_of_static(self) -> float | None:
        """Replica-seconds against those of a flow that always has what the peak needs."""
        return sum(self.replicas) / (self.static * len(self.replicas)) if self.replicas else None


@dataclass(frozen=True, slots=True)
class Change:
    """A decision that changed something, with its first reason."""

    at_s: float
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.at_s:4.0f} s  {self.what}: {self.why}"


def changes(outcome: Outcome) -> Iterator[Change]:
    """Replicas that were set to something else than before, and lifetimes that moved by a quarter or more."""
    replicas: dict[str, int] = {}
    lifetimes: dict[str, float] = {}
    for entry in outcome.decisions:
        decision = entry.decision
        words = [
            f"{task} {replicas[task]} → {count}"
            for task, count in decision.parallelism.items()
            if replicas.get(task, count) != count
        ]
        moved = {
            stream: ms
            for stream, ms in decision.batch_lifetime_ms.items()
            if abs(ms - lifetimes.setdefault(stream, ms)) > _MOVED * lifetimes[stream]
        }
        words += [f"{stream} batched {lifetimes[stream]:.1f} → {ms:.1f} ms" for stream, ms in moved.items()]
        scaled = any(replicas.get(task, count) != count for task, count in decision.parallelism.items())
        replicas |= decision.parallelism
        lifetimes |= moved
        if words:
            about = [one.why for one in decision.reasons if (one.task is not None) == scaled]
            why = (about or [one.why for one in decision.reasons] or ["no reason is known"])[0]
            yield Change(entry.at_s - outcome.zero_s, ", ".join(words), why)


def live_view(outcome: Outcome, overdue: int) -> RenderableType:
    """The latest seconds, the newest last, and the latest decisions below."""
    table = Table(
        title=f"PrimeTest on Spark real-time mode: mean latency of at most {outcome.bound_ms:g} ms",
        caption=f"overdue items: {overdue}   duplicated items: {outcome.duplicated}",
        title_justify="left",
    )
    for heading in ("s", "items/s", "mean ms", "p95 ms", "p99 ms", "testers", "cores", "constraint"):
        table.add_column(heading, justify="right")
    for row in list(_rows(outcome))[-SHOWN_SECONDS:]:
        table.add_row(*row)
    decisions = [Text(str(change), overflow="ellipsis", no_wrap=True) for change in changes(outcome)]
    return Group(table, *decisions[-SHOWN_DECISIONS:])


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for one, replicas, cores in zip(outcome.seconds, outcome.replicas, outcome.cores, strict=True):
        verdict = {True: "[green]held", False: "[red]missed", None: "-"}[one.held(outcome.bound_ms)]
        latencies = [_ms(value) for value in (one.mean_ms, one.p95_ms, one.p99_ms)]
        yield (
            str(one.number + 1),
            f"{one.offered_per_s:,.0f}",
            *latencies,
            str(replicas),
            f"{cores:.2f}",
            verdict,
        )


def second_line(outcome: Outcome, told: int, console: Console) -> int:
    """For logs and pipes: the latest second, and changes after the first `told`; how many are told now."""
    *_, row = _rows(outcome)
    names = ("s", "items/s", "ms", "ms p95", "ms p99", "testers", "cores")
    figures = "  ".join(f"{value} {name}" for value, name in zip(row, names, strict=False))
    console.print(f"{figures}  {Text.from_markup(row[-1])}", highlight=False, soft_wrap=True)
    made = list(changes(outcome))
    for change in made[told:]:
        console.print(f"  {change}", markup=False, highlight=False, soft_wrap=True)
    return len(made)


def summary_table(outcome: Outcome) -> Table:
    """What it came to."""
    table = Table("summary", "", show_header=False, title="PrimeTest: summary", title_justify="left")
    held, share = outcome.share_held(), outcome.share_of_static()
    peak = max((one.offered_per_s for one in outcome.seconds), default=0.0)
    table.add_row(
        f"seconds with a mean of at most {outcome.bound_ms:g} ms", "-" if held is None else f"{held:.1%}"
    )
    table.add_row(
        f"replica-seconds, of those of {outcome.static} testers all the time",
        "-" if share is None else f"{share:.1%}",
    )
    table.add_row("testers, fewest and most", _range(outcome.replicas))
    table.add_row("highest rate", f"{peak:,.0f} items/s, {peak / outcome.capacity_per_s:.0%} of the capacity")
    table.add_row("decisions that changed something", str(len(list(changes(outcome)))))
    table.add_row("items", f"{outcome.items:,}")
    table.add_row("lost", str(outcome.lost))
    table.add_row("duplicated", str(outcome.duplicated))
    return table


def _range(values: Sequence[int]) -> str:
    return f"{min(values)} and {max(values)}" if values else "-"


def draw(outcome: Outcome, path: Path) -> bool:
    """The story as a picture: load, latency against its bound, testers against the static peak; False without
    anything to draw it with.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogFormatter
    except ImportError:
        return False
    times = [one.number + 0.5 for one in outcome.seconds]
    figure = Figure(figsize=(9, 8), layout="constrained")
    load, latency, testers = figure.subplots(3, 1, sharex=True)
    load.plot(times, [one.offered_per_s for one in outcome.seconds], color=BLUE, linewidth=2, label="load")
    load.axhline(outcome.capacity_per_s, color=GREY, linestyle=":", label="what this machine carries")
    load.set(ylabel="load [items/s]", ylim=(0, None))
    for name, style, shade, values in (
        ("mean", "-", BLUE, [one.mean_ms for one in outcome.seconds]),
        ("p95", "--", ORANGE, [one.p95_ms for one in outcome.seconds]),
        ("p99", ":", GREEN, [one.p99_ms for one in outcome.seconds]),
    ):
        known = [float("nan") if value is None else value for value in values]
        latency.plot(times, known, style, color=shade, label=name)
    latency.axhline(
        outcome.bound_ms, color=BLACK, linewidth=1, label=f"bound of the mean, {outcome.bound_ms:g} ms"
    )
    missed = [(t, one.mean_ms) for t, one in zip(times, outcome.seconds, strict=True)
              if one.held(outcome.bound_ms) is False]  # fmt: skip
    if missed:
        latency.plot(*zip(*missed, strict=True), "o", color=VIOLATED, label="second missed")
    latency.set(yscale="log", ylabel="latency from due time to sink [ms]")
    for axis_ticks in (latency.yaxis.set_major_formatter, latency.yaxis.set_minor_formatter):
        axis_ticks(LogFormatter(minor_thresholds=(2, 0.5)))
    testers.axhline(outcome.static, color=GREY, linestyle="--", label="static, sized for the peak")
    testers.fill_between(times, list(outcome.replicas), step="mid", color=BLUE, alpha=0.25)
    testers.step(times, list(outcome.replicas), where="mid", color=BLUE, label="testers")
    testers.step(times, list(outcome.cores), where="mid", color=ORANGE, label="cores used")
    testers.set(ylabel="testers, cores", xlabel="time [s]", ylim=(0, outcome.static + 1))
    for axes in (load, latency, testers):
        # Above the plot, where it hides nothing.
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=5, frameon=False, fontsize="small")
        axes.grid(visible=True, linewidth=0.3)
    held, share = outcome.share_held(), outcome.share_of_static()
    if held is not None and share is not None:
        figure.suptitle(
            f"PrimeTest, measured on Spark: bound kept in {held:.0%} of the seconds"
            f" with {share:.0%} of the static replica-seconds"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return True


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
