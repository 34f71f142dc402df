"""Where everything of a flow's picture goes, in points: boxes, the lines between them, the words on those."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from penstock.flow.graph import Graph
from penstock.flow.layers import Layout, lay_out
from penstock.report.graph_labels import NAME_PT, Words, stream_words, task_words
from penstock.report.placement import Node, Placement, place

MARGIN_PT, GAP_PT, PAD_PT, ROW_PT = 14.0, 46.0, 9.0, 30.0
CAPTION_PT, ARROW_PT = 22.0, 3.0
# Where words may stand between the ends of a line, the best place first.
SHARES: Final = (0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73, 0.2, 0.8)

Point = tuple[float, float]
Way = tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in points, from its middle."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: "Box") -> bool:
        """Whether the two overlap."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2
            and abs(self.y - other.y) < (self.height + other.height) / 2
        )

    def holds(self, point: Point) -> bool:
        """Whether a point lies inside."""
        return abs(self.x - point[0]) < self.width / 2 and abs(self.y - point[1]) < self.height / 2


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything with its place: boxes of tasks, the middle of every column, ways of streams, labels."""

    layout: Layout
    placement: Placement
    boxes: Mapping[str, Box]
    spans: tuple[tuple[float, float], ...]
    ways: Mapping[str, Way]
    labels: Mapping[str, Box]
    width: float
    height: float


def arrange(graph: Graph) -> Sheet:
    """Sizes first, then columns as wide as their boxes and gaps as wide as the words in them."""
    layout = lay_out(graph)
    placement = place(layout)
    sizes = {task.name: _size(layout, task.name) for task in graph.tasks}
    words = {stream.name: words_of(graph, stream.name) for stream in graph.streams}
    widths = [
        max((sizes[node][0] for node in column if isinstance(node, str)), default=20.0)
        for column in placement.columns
    ]
    middles, spans, width = _columns(placement, widths, _gaps(placement, words))
    tallest = max(height for _, height in sizes.values())
    lines = max((label.height_pt for label in words.values()), default=0.0)
    row_pt = max(tallest + ROW_PT, 2.2 * lines)
    top = CAPTION_PT + MARGIN_PT + tallest / 2

    def spot(node: Node) -> Point:
        return middles[placement.column_of(node)], top + row_pt * placement.rows[node]

    boxes = {name: Box(*spot(name), *size) for name, size in sizes.items()}
    ways = _ways(graph, placement, boxes, spot)
    height = top + row_pt * max(placement.rows.values()) + tallest / 2 + MARGIN_PT
    return Sheet(layout, placement, boxes, spans, ways, _labels(boxes, ways, words), width, height)


def _size(layout: Layout, name: str) -> tuple[float, float]:
    title = Words((name,), NAME_PT)
    details = task_words(layout.graph.task(name), layout)
    width = max(1.08 * title.width_pt, details.width_pt) + 2 * PAD_PT
    return width, title.height_pt + details.height_pt + 1.4 * PAD_PT


def words_of(graph: Graph, name: str) -> Words:
    stream = graph.stream(name)
    return stream_words(stream, several_outputs=len(graph.task(stream.sender).outputs) > 1)


def _gaps(placement: Placement, words: Mapping[str, Words]) -> list[float]:
    """The room behind each column: for the words of the streams that could stand there, and an arrow."""
    gaps = [GAP_PT] * (len(placement.columns) - 1)
    for name, way in placement.ways.items():
        # A stream that passes several gaps has its words in the widest of them.
        crossed = range(placement.column_of(way[0]), placement.column_of(way[-1]))
        if max(gaps[number] for number in crossed) < words[name].width_pt + GAP_PT:
            gaps[crossed[0]] = words[name].width_pt + GAP_PT
    return gaps


def _columns(
    placement: Placement, widths: list[float], gaps: list[float]
) -> tuple[list[float], tuple[tuple[float, float], ...], float]:
    left, middles, edges = MARGIN_PT + PAD_PT, [], []
    for width, gap in zip(widths, [*gaps, 0.0], strict=True):
        middles.append(left + width / 2)
        edges.append((left, left + width))
        left += width + gap
    right = edges[-1][1] + MARGIN_PT + PAD_PT
    starts = [edges[first][0] - PAD_PT for first, _ in placement.spans]
    ends = [edges[last][1] + PAD_PT for _, last in placement.spans]
    return middles, tuple(zip(starts, ends, strict=True)), right


def _ways(
    graph: Graph, placement: Placement, boxes: Mapping[str, Box], spot: Callable[[Node], Point]
) -> dict[str, Way]:
    """From the right side of a box to the left side of another; streams of one side begin apart."""
    leaving: dict[str, Point] = {}
    arriving: dict[str, Point] = {}
    for name, box in boxes.items():
        sent = sorted(graph.outputs_of(name), key=lambda s: spot(placement.ways[s.name][1])[1])
        received = sorted(graph.inputs_of(name), key=lambda s: spot(placement.ways[s.name][-2])[1])
        right, left = box.x + box.width / 2, box.x - box.width / 2 - ARROW_PT
        leaving.update(zip((s.name for s in sent), _ports(right, box, len(sent)), strict=True))
        arriving.update(zip((s.name for s in received), _ports(left, box, len(received)), strict=True))
    return {
        name: (leaving[name], *(spot(bend) for bend in way[1:-1]), arriving[name])
        for name, way in placement.ways.items()
    }


def _ports(x: float, box: Box, count: int) -> list[Point]:
    apart = min(12.0, (box.height - 10.0) / max(1, count - 1))
    return [(x, box.y + apart * (number - (count - 1) / 2)) for number in range(count)]


def _labels(boxes: Mapping[str, Box], ways: Mapping[str, Way], words: Mapping[str, Words]) -> dict[str, Box]:
    """The words of a stream on its line, where they meet no box and no other words, and few other lines."""
    traces = {
        name: [_along(*link, share / 20) for link in pairwise(way) for share in range(21)]
        for name, way in ways.items()
    }
    taken = list(boxes.values())
    labels: dict[str, Box] = {}
    for name, way in sorted(ways.items(), key=lambda entry: len(entry[1])):
        width, height = words[name].width_pt + 4, words[name].height_pt + 1
        places = [Box(*_along(*link, share), width, height) for link in pairwise(way) for share in SHARES]
        others = [point for other, trace in traces.items() if other != name for point in trace] + [way[-1]]

        def cost(place: Box, others: list[Point] = others) -> tuple[int, int]:
            return sum(place.meets(box) for box in taken), sum(place.holds(point) for point in others)

        labels[name] = min(places, key=cost)
        taken.append(labels[name])
    return labels


def curve(begin: Point, end: Point) -> list[Point]:
    """Control points of a line that leaves and arrives level."""
    half = (begin[0] + end[0]) / 2
    return [begin, (half, begin[1]), (half, end[1]), end]


def _along(begin: Point, end: Point, share: float) -> Point:
    """A point of that curve (Bezier's formula)."""
    weights = [(1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3]
    points = curve(begin, end)
    x, y = (
        sum(weight * point[axis] for weight, point in zip(weights, points, strict=True)) for axis in (0, 1)
    )
    return x, y
