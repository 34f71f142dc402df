"""How pictures of a report are laid out: a row for each subject, a column for each recording."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.report.colours import VIOLATED
from penstock.report.history import History

WIDTH_IN, ROW_IN = 9.0, 2.3
COLUMN_IN = 6.0
# Above this many times the bottom of a scale, small values could not be read on it.
WIDE = 8.0
HEADROOM = 1.05


def save(figure: Figure, path: Path) -> None:
    """Write a picture; white, so that it can be read on any page."""
    figure.savefig(path, dpi=110, facecolor="white")


def grid(
    histories: Sequence[History],
    rows: Sequence[str],
    draw: Callable[[Axes, History, str], None],
    *,
    from_zero: bool = False,
    same_scale: bool = False,
    time_axis: bool = True,
    row_in: float = ROW_IN,
) -> Figure | None:
    """A row for each name, a column for each recording; the legend stands below, where it hides nothing."""
    if not rows:
        return None
    count = len(histories)
    width_in = WIDTH_IN if count == 1 else COLUMN_IN * count
    figure = Figure(figsize=(width_in, row_in * len(rows) + 0.7), layout="constrained")
    plots = figure.subplots(
        len(rows), count, squeeze=False, sharex=time_axis, sharey="row" if same_scale else False
    )
    for column, history in enumerate(histories):
        for line, name in enumerate(rows):
            draw(plots[line, column], history, name)
        if count > 1:
            plots[0, column].set_title(history.title, fontweight="bold")
        if time_axis:
            plots[-1, column].set_xlabel("time [s]")
    for axes in plots.flat:
        axes.grid(visible=True, linewidth=0.3)
        axes.set_axisbelow(True)
        if time_axis:
            axes.set_xlim(0, max(history.ends_s[-1] for history in histories))
    if from_zero:
        # Those that share a scale have one limit; setting it once more would raise it once more.
        for axes in plots[:, 0] if same_scale else plots.flat:
            if axes.get_yscale() == "linear":
                axes.set_ylim(0, HEADROOM * axes.get_ylim()[1])
    _legend(figure, plots.flat, columns=max(2, int(width_in / 1.6)))
    return figure


def _legend(figure: Figure, plots: Iterable[Axes], columns: int) -> None:
    """Every label once."""
    found: dict[str, Any] = {}
    for axes in plots:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            found.values(),
            found.keys(),
            loc="outside lower left",
            ncols=columns,
            frameon=False,
            fontsize="small",
        )


def label_bound(axes: Axes, bound_ms: float) -> None:
    """How much it is, beside its line."""
    axes.annotate(
        f"bound, {bound_ms:g} ms",
        (0.005, bound_ms),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 2),
        textcoords="offset points",
        fontsize="x-small",
    )


def steps(axes: Axes, history: History, values: Sequence[float | None], **look: Any) -> None:
    """A value for each interval, drawn over the whole of it; what is unknown leaves a gap."""
    heights = [float("nan") if value is None else float(value) for value in values]
    axes.stairs(heights, [*history.begins_s, history.ends_s[-1]], baseline=None, **{"linewidth": 1.6, **look})


def shade(axes: Axes, history: History, chosen: Sequence[bool]) -> None:
    label: str | None = "violated"
    for begin_s, end_s, violated in zip(history.begins_s, history.ends_s, chosen, strict=True):
        if violated:
            axes.axvspan(begin_s, end_s, color=VIOLATED, alpha=0.18, linewidth=0, label=label)
            label = None


def union(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
