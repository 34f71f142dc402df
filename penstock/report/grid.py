"""How pictures of a report are laid out: a row for each subject, a column for each recording."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.report.colours import VIOLATED
from penstock.report.history import History

WIDTH_IN, ROW_IN = 9.0, 2.3
LEGEND: Final[dict[str, Any]] = {
    "loc": "lower left",
    "bbox_to_anchor": (0.0, 1.0),
    "frameon": False,
    "fontsize": "small",
    "borderaxespad": 0.2,
    "ncols": 6,
}


def save(figure: Figure, path: Path) -> None:
    """Write a picture; white, so that it can be read on any page."""
    figure.savefig(path, dpi=110, facecolor="white")


def grid(
    histories: Sequence[History],
    rows: Sequence[str],
    draw: Callable[[Axes, History, str], None],
    *,
    from_zero: bool = False,
    time_axis: bool = True,
    row_in: float = ROW_IN,
) -> Figure | None:
    """A row for each name, a column for each recording; legends stand above their plots."""
    if not rows:
        return None
    count = len(histories)
    size = (WIDTH_IN if count == 1 else 6.0 * count, row_in * len(rows) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    plots = figure.subplots(
        len(rows),
        count,
        squeeze=False,
        sharex="col" if time_axis else False,
        sharey="row" if from_zero else False,
    )
    for column, history in enumerate(histories):
        for line, name in enumerate(rows):
            axes = plots[line, column]
            draw(axes, history, name)
            axes.grid(visible=True, linewidth=0.3)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(**{**LEGEND, "ncols": 6 if count == 1 else 4})
            if from_zero:
                axes.set_ylim(bottom=0)
        if count > 1:
            plots[0, column].set_title(history.name, fontweight="bold", pad=24)
        if time_axis:
            plots[-1, column].set_xlabel("time [s]")
    return figure


def steps(axes: Axes, history: History, values: Sequence[float | None], **look: Any) -> None:
    """A value for each interval, drawn over the whole of it; what is unknown leaves a gap."""
    heights = [float("nan") if value is None else float(value) for value in values]
    axes.stairs(heights, [*history.begins_s, history.ends_s[-1]], baseline=None, **look)


def shade(axes: Axes, history: History, chosen: Sequence[bool]) -> None:
    label: str | None = "violated"
    for begin_s, end_s, violated in zip(history.begins_s, history.ends_s, chosen, strict=True):
        if violated:
            axes.axvspan(begin_s, end_s, color=VIOLATED, alpha=0.18, linewidth=0, label=label)
            label = None


def union(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
