"""Where the tasks of a flow stand in a picture: columns from left to right, rows that keep streams apart.

A layered drawing after Sugiyama, Tagawa and Toda (1981): a layer takes as many columns as its longest unit
has tasks, a stream that skips columns gets a bend in each of them, and the rows of a column are sorted by the
mean row of their neighbours, back and forth, keeping the order with the fewest crossings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from penstock.flow.layers import Layout

SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Bend:
    """Where a stream passes a column in which it neither begins nor ends."""

    stream: str
    column: int


Node = str | Bend


@dataclass(frozen=True, slots=True)
class Placement:
    """Column and row of every task and bend; `spans` are the first and last column of each layer."""

    columns: tuple[tuple[Node, ...], ...]
    rows: Mapping[Node, float]
    spans: tuple[tuple[int, int], ...]
    ways: Mapping[str, tuple[Node, ...]]

    def column_of(self, node: Node) -> int:
        """Where a task or bend stands."""
        return next(number for number, column in enumerate(self.columns) if node in column)


def place(layout: Layout) -> Placement:
    """The columns and rows of a flow."""
    spans, column_of = _columns(layout)
    ways: dict[str, tuple[Node, ...]] = {}
    columns: list[list[Node]] = [[] for _ in range(spans[-1][1] + 1)]
    for task in layout.graph.tasks:
        columns[column_of[task.name]].append(task.name)
    for stream in layout.graph.streams:
        between = range(column_of[stream.sender] + 1, column_of[stream.receiver])
        bends = [Bend(stream.name, column) for column in between]
        for bend in bends:
            columns[bend.column].append(bend)
        ways[stream.name] = (stream.sender, *bends, stream.receiver)
    links = [link for way in ways.values() for link in pairwise(way)]
    ordered = _with_few_crossings(columns, links)
    return Placement(tuple(tuple(column) for column in ordered), _rows(ordered, links), spans, ways)


def crossings(columns: Iterable[Iterable[Node]], links: Iterable[tuple[Node, Node]]) -> int:
    """How many pairs of links between the same two columns cross."""
    rank = {node: (number, row) for number, column in enumerate(columns) for row, node in enumerate(column)}
    ends = [(rank[left], rank[right]) for left, right in links]
    return sum(
        (a[1] - b[1]) * (c[1] - d[1]) < 0
        for index, (a, c) in enumerate(ends)
        for b, d in ends[:index]
        if a[0] == b[0]
    )


def _columns(layout: Layout) -> tuple[tuple[tuple[int, int], ...], dict[str, int]]:
    """Inside a unit, a task stands one column behind the last of those that feed it there."""
    inside: dict[str, int] = {}
    for task in layout.graph.tasks:
        local = [s.sender for s in layout.graph.inputs_of(task.name) if layout.is_local(s)]
        inside[task.name] = 1 + max((inside[sender] for sender in local), default=-1)
    spans: list[tuple[int, int]] = []
    column_of: dict[str, int] = {}
    first = 0
    for layer in layout.layers:
        names = [name for unit in layer.units for name in unit.tasks]
        column_of.update((name, first + inside[name]) for name in names)
        spans.append((first, max(column_of[name] for name in names)))
        first = spans[-1][1] + 1
    return tuple(spans), column_of


def _with_few_crossings(columns: list[list[Node]], links: list[tuple[Node, Node]]) -> list[list[Node]]:
    before, behind = _neighbours(links)
    order = [list(column) for column in columns]
    best, fewest = order, crossings(order, links)
    for sweep in range(SWEEPS):
        forwards = sweep % 2 == 0
        order = [list(column) for column in order]
        for number in range(len(order)) if forwards else range(len(order) - 1, -1, -1):
            row = {node: position for column in order for position, node in enumerate(column)}
            neighbours = before if forwards else behind
            keys = {node: _mean_row(node, row, neighbours) for node in order[number]}
            order[number].sort(key=keys.__getitem__)
        count = crossings(order, links)
        if count < fewest:
            best, fewest = order, count
    return best


def _rows(columns: list[list[Node]], links: list[tuple[Node, Node]]) -> dict[Node, float]:
    """Rows near those of the neighbours, at least 1 apart, in the order of the column."""
    before, behind = _neighbours(links)
    rows: dict[Node, float] = {}
    for column in columns:
        rows.update((node, number - (len(column) - 1) / 2) for number, node in enumerate(column))
    for _ in range(SWEEPS):
        for column in columns:
            wanted = [_mean_row(node, rows, {node: before[node] + behind[node]}) for node in column]
            rows.update(zip(column, _spread(wanted), strict=True))
    lowest = min(rows.values())
    return {node: row - lowest for node, row in rows.items()}


def _spread(wanted: list[float]) -> list[float]:
    """The nearest rows by least squares that are at least 1 apart (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for number, value in enumerate(wanted):
        total, size = value - number, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            earlier, count = blocks.pop()
            total, size = total + earlier, size + count
        blocks.append((total, size))
    means = [total / size for total, size in blocks for _ in range(size)]
    return [mean + number for number, mean in enumerate(means)]


def _neighbours(links: list[tuple[Node, Node]]) -> tuple[dict[Node, list[Node]], dict[Node, list[Node]]]:
    nodes = {node for link in links for node in link}
    before: dict[Node, list[Node]] = {node: [] for node in nodes}
    behind: dict[Node, list[Node]] = {node: [] for node in nodes}
    for left, right in links:
        behind[left].append(right)
        before[right].append(left)
    return before, behind


def _mean_row(node: Node, rows: Mapping[Node, float], neighbours: Mapping[Node, list[Node]]) -> float:
    near = neighbours[node]
    return sum(rows[other] for other in near) / len(near) if near else rows[node]
