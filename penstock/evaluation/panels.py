"""Pictures of several runs over one time axis: a panel for each quantity, a line for each run or task."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from penstock.report.colours import BLACK, GREY, colour
from penstock.report.grid import WIDE, steps
from penstock.report.history import History

WIDTH_IN, PANEL_IN = 9.0, 2.4
STYLES: Final = ("-", "--", ":", "-.")


@dataclass(frozen=True, slots=True)
class Line:
    """One value for each interval of a run."""

    label: str
    history: History
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines with a common scale; `bound_ms` is drawn across, `shaded` are spans of time with their name.

    The scale is logarithmic if a line rises far above the bound, or if that is asked for.
    """

    label: str
    lines: Sequence[Line]
    bound_ms: float | None = None
    logarithmic: bool = False
    whole: bool = False
    shaded: tuple[float, float, str] | None = None

    @property
    def spread(self) -> bool:
        """Whether the scale is logarithmic."""
        top = max((value or 0.0 for line in self.lines for value in line.values), default=0.0)
        return self.logarithmic or (self.bound_ms is not None and top > WIDE * self.bound_ms)


def draw(panels: Sequence[Panel]) -> Figure:
    """The panels one below the other; each has its legend beside it, where it hides nothing."""
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN * len(panels) + 0.4), layout="constrained")
    plots = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
    for axes, panel in zip(plots, panels, strict=True):
        if panel.shaded is not None:
            begin_s, end_s, name = panel.shaded
            axes.axvspan(begin_s, end_s, color=GREY, alpha=0.2, linewidth=0, label=name)
        known = [line for line in panel.lines if any(value is not None for value in line.values)]
        for place, (line, style) in enumerate(zip(known, cycle(STYLES), strict=False)):
            steps(axes, line.history, line.values, label=line.label, color=colour(place), linestyle=style)
        if panel.bound_ms is not None:
            axes.axhline(
                panel.bound_ms,
                color=BLACK,
                linewidth=1.0,
                linestyle=(0, (1, 1)),
                label=f"bound, {panel.bound_ms:g} ms",
            )
        axes.set_ylabel(panel.label)
        axes.grid(visible=True, linewidth=0.3)
        if panel.spread:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        if panel.whole:
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        if axes.get_legend_handles_labels()[1]:
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    plots[-1].set_xlabel("time [s]")
    plots[-1].set_xlim(0, max(line.history.ends_s[-1] for panel in panels for line in panel.lines))
    return figure
