"""The words in the picture of a flow, and how much room they take."""

from dataclasses import dataclass
from functools import cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from penstock.durations import format_ms
from penstock.flow.codec import codec_name
from penstock.flow.graph import ITEM_ID, Constraint, Stream, Task
from penstock.flow.layers import Layout
from penstock.flow.names import own_name

NAME_PT, DETAIL_PT = 11.0, 8.5


@dataclass(frozen=True, slots=True)
class Words:
    """Lines of text of one size in points."""

    lines: tuple[str, ...]
    size_pt: float = DETAIL_PT

    @property
    def width_pt(self) -> float:
        """The length of the longest line."""
        return max((_width_pt(line, self.size_pt) for line in self.lines), default=0.0)

    @property
    def height_pt(self) -> float:
        """All lines with the space between them."""
        return 1.35 * self.size_pt * len(self.lines)

    @property
    def text(self) -> str:
        """For drawing."""
        return "\n".join(self.lines)


@cache
def _width_pt(line: str, size_pt: float) -> float:
    extent = (
        TextPath((0, 0), line, size=size_pt, prop=FontProperties()).get_extents() if line.strip() else None
    )
    return 0.0 if extent is None else float(extent.x1)


def task_words(task: Task, layout: Layout) -> Words:
    """What a task is, below its name."""
    lines = []
    if task.parallelism.elastic:
        pool = layout.unit_of(task.name).pool
        lines.append(f"{task.parallelism.min} to {task.parallelism.max} replicas, pool {pool}")
    else:
        lines.append(f"{task.parallelism.min} replica{'' if task.parallelism.min == 1 else 's'}")
    if task.every_ms is not None:
        lines.append(f"timer every {format_ms(task.every_ms)}")
    if task.latency_kind == "read_write":
        lines.append("read-write latency")
    return Words(tuple(lines))


def stream_words(stream: Stream, *, several_outputs: bool) -> Words:
    """How a stream is wired, and how its items are shipped unless that is at once and pickled."""
    lines = [_wiring(stream)]
    if several_outputs:
        lines.append(f"output {stream.output}")
    if stream.batch_lifetime_ms:
        lines.append(f"batches of {format_ms(stream.batch_lifetime_ms)}")
    if stream.codec != "pickle":
        lines.append(codec_name(stream.codec))
    return Words(tuple(lines))


def constraint_words(constraint: Constraint) -> Words:
    """The bound in a sentence."""
    bound, window = format_ms(constraint.latency_ms), format_ms(constraint.window_s * 1000)
    return Words((f"{constraint.name}: {constraint.statistic} of at most {bound} in any {window}",), 9.5)


def _wiring(stream: Stream) -> str:
    if stream.wiring != "key":
        return stream.wiring.replace("_", " ")
    if stream.key is ITEM_ID:
        return "by item id"
    name = None if stream.key is None else own_name(stream.key)
    return "by key" if name is None else f"by key {name}"
