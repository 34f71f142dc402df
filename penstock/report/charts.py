"""The pictures of a report, in the order in which people ask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.figure import Figure

from penstock.report import charts_latency, charts_load, charts_settings
from penstock.report.history import History


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: its file name, its heading, what it answers, and who draws it (None: nothing to draw)."""

    name: str
    title: str
    about: str
    draw: Callable[[Sequence[History]], Figure | None]


CHARTS: Final = (
    Chart(
        "latency",
        "Latency",
        "Each constraint against its bound; intervals that broke it are shaded.",
        charts_latency.latency,
    ),
    Chart(
        "parts",
        "Where the latency goes",
        "Mean latency by what it is spent on; what is far above the bound is cut off.",
        charts_latency.parts_over_time,
    ),
    Chart(
        "parts_by_task",
        "Where the latency goes, by task",
        "Medians over the intervals of the run.",
        charts_latency.parts_by_task,
    ),
    Chart("rate", "Rate", "Items that the sources sent and the sinks received.", charts_load.rate),
    Chart("replicas", "Replicas", "Active, asked for by the load, and in the pool.", charts_load.replicas),
    Chart(
        "lifetimes",
        "Batch lifetimes",
        "How long a stream gathers items before it ships them.",
        charts_settings.lifetimes,
    ),
    Chart("chains", "Chains", "Tasks that share a process.", charts_settings.chains),
    Chart("cpu", "CPU", "Busy cores: of everything, and of the processes of each task.", charts_load.cpu),
    Chart(
        "decisions", "Decisions", "What was changed, and what a guard held back.", charts_settings.decisions
    ),
)
