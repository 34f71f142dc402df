"""The picture of a flow: tasks in their layers, streams with their wirings, constraints along their way."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path as Curve

from penstock.flow.graph import Graph
from penstock.report.colours import BLACK, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from penstock.report.errors import PictureError
from penstock.report.graph_arrangement import (
    ARROW_PT,
    MARGIN_PT,
    PAD_PT,
    Box,
    Sheet,
    Way,
    arrange,
    curve,
    words_of,
)
from penstock.report.graph_labels import NAME_PT, Words, constraint_words, task_words

SUFFIXES: Final = (".svg", ".png")
TITLE_PT: Final = 24.0
FACES: Final = {"source": "#DDEEDF", "task": "#E3EEF8", "sink": "#F3E6D3"}
LINES: Final[Mapping[str, Mapping[str, Any]]] = {
    "round_robin": {"linestyle": "-", "linewidth": 1.1},
    "key": {"linestyle": (0, (6, 2.5)), "linewidth": 1.1},
    "broadcast": {"linestyle": (0, (1.5, 1.8)), "linewidth": 1.6},
    "forward": {"linestyle": "-", "linewidth": 2.8},
}
CONSTRAINT_COLOURS: Final = (ORANGE, SKY, GREEN, PURPLE, VERMILION)


def draw_graph(graph: Graph, path: Path | str) -> None:
    """Write the picture as SVG or PNG, by the suffix of the file."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise PictureError(f'"{path}" ends in neither .svg nor .png; choose one of the two')
    sheet = arrange(graph)
    foot = len(graph.constraints) * 18.0 + (8.0 if graph.constraints else 0.0)
    height = TITLE_PT + sheet.height + foot
    figure = Figure(figsize=(sheet.width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, sheet.width), ylim=(sheet.height + foot, -TITLE_PT))
    axes.axis("off")
    axes.text(MARGIN_PT, -TITLE_PT / 2, f"Flow {graph.name}", fontsize=11.0, va="center")
    _draw_layers(axes, sheet)
    _draw_constraints(axes, sheet)
    for stream in graph.streams:
        _draw_stream(axes, sheet, stream.name)
    for task in graph.tasks:
        _draw_task(axes, sheet, task.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": graph.name}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=150, facecolor="white", metadata=metadata)


def _draw_layers(axes: Axes, sheet: Sheet) -> None:
    for layer, (left, right) in zip(sheet.layout.layers, sheet.spans, strict=True):
        band = Rectangle((left, 6), right - left, sheet.height - 10, facecolor="#F2F2F2", edgecolor="none")
        axes.add_patch(band)
        axes.text((left + right) / 2, 17, f"layer {layer.index}", ha="center", fontsize=8.5, color="#555555")


def _draw_constraints(axes: Axes, sheet: Sheet) -> None:
    """A broad line under the streams, frames around the tasks, and the bounds below the picture."""
    around: dict[str, list[str]] = {}
    for number, constraint in enumerate(sheet.layout.graph.constraints):
        shade = CONSTRAINT_COLOURS[number % len(CONSTRAINT_COLOURS)]
        for element in constraint.sequence:
            if element in sheet.boxes:
                around.setdefault(element, []).append(shade)
            else:
                line = PathPatch(_path(sheet.ways[element]), facecolor="none", edgecolor=shade, alpha=0.45)
                line.set(linewidth=9, capstyle="round")
                axes.add_patch(line)
        y = sheet.height + 8 + 18 * number
        axes.plot([MARGIN_PT, MARGIN_PT + 26], [y, y], color=shade, linewidth=7, solid_capstyle="round")
        axes.text(MARGIN_PT + 36, y, constraint_words(constraint).text, fontsize=9.5, va="center")
    for task, shades in around.items():
        # The widest first, so that each can be seen around the one before.
        for place, shade in reversed(list(enumerate(shades))):
            _frame(axes, sheet.boxes[task], 5.0 + 4.0 * place, facecolor=shade, edgecolor="none")


def _draw_stream(axes: Axes, sheet: Sheet, name: str) -> None:
    stream, way = sheet.layout.graph.stream(name), sheet.ways[name]
    line = PathPatch(_path(way), facecolor="none", edgecolor=BLACK, capstyle="butt")
    line.set(**LINES[stream.wiring])
    axes.add_patch(line)
    (x, y) = way[-1]
    axes.fill([x + ARROW_PT, x - 5, x - 5], [y, y - 3.6, y + 3.6], color=BLACK, linewidth=0)
    label, words = sheet.labels[name], words_of(sheet.layout.graph, name)
    patch = FancyBboxPatch(
        (label.x - label.width / 2, label.y - label.height / 2), label.width, label.height, linewidth=0
    )
    patch.set(boxstyle="round,pad=0,rounding_size=3", facecolor="white", alpha=0.92)
    axes.add_patch(patch)
    axes.text(
        label.x, label.y, words.text, ha="center", va="center", fontsize=words.size_pt, linespacing=1.15
    )


def _draw_task(axes: Axes, sheet: Sheet, name: str) -> None:
    task, box = sheet.layout.graph.task(name), sheet.boxes[name]
    if task.parallelism.elastic:
        behind = Box(box.x + 3, box.y - 3, box.width, box.height)
        _frame(axes, behind, 0, facecolor="white", edgecolor=GREY)
    _frame(axes, box, 0, facecolor=FACES[task.kind], edgecolor=BLACK)
    details = task_words(task, sheet.layout)
    top = box.y - box.height / 2 + 0.7 * PAD_PT
    title = Words((name,), NAME_PT)
    axes.text(
        box.x, top + title.height_pt / 2, name, ha="center", va="center", fontsize=NAME_PT, weight="bold"
    )
    middle = top + title.height_pt + details.height_pt / 2
    axes.text(
        box.x, middle, details.text, ha="center", va="center", fontsize=details.size_pt, linespacing=1.15
    )


def _frame(axes: Axes, box: Box, around: float, **look: Any) -> None:
    width, height = box.width + 2 * around, box.height + 2 * around
    patch = FancyBboxPatch((box.x - width / 2, box.y - height / 2), width, height, linewidth=0.9)
    patch.set(boxstyle=f"round,pad=0,rounding_size={5 + around}", **look)
    axes.add_patch(patch)


def _path(way: Way) -> Curve:
    points = [way[0]]
    for begin, end in pairwise(way):
        points += curve(begin, end)[1:]
    return Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * (len(points) - 1)])
