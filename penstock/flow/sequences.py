"""Where items enter and leave the sequences of constraints: what it takes to follow single items through one.

Constraints share no stream, so an item on a stream is in one sequence at most, and one time is all it has to
carry: when it entered that sequence. It enters

    with the first stream      when it is emitted into it; out of a source, when it was due
    with the first task        when the task takes it

and leaves when the next task takes it (a stream is the last element) or when the last task is done with it.
A task that gathers (latency "read_write") keeps an item until it writes the next time: a single item cannot
be followed to there. What such a task puts out while it processes an item is followed on as that item.
"""

from dataclasses import dataclass
from typing import Literal

from penstock.flow.graph import Graph

Entry = Literal["due", "emitted", "taken", "before"]
"""When the items of a stream entered its sequence; `before`: on an earlier stream of it."""

Exit = Literal["taken", "done"]
"""When they leave it at the receiver of the stream: when it takes them, or when it is done with them."""


@dataclass(frozen=True, slots=True)
class Place:
    """A stream in the sequence of a constraint; `after` is the number of the stream before it there."""

    constraint: str
    entry: Entry
    after: int | None = None
    exit: Exit | None = None


def places(graph: Graph) -> dict[int, Place]:
    """The streams that belong to a constraint, by their numbers."""
    numbers = {stream.name: number for number, stream in enumerate(graph.streams)}
    found: dict[int, Place] = {}
    for constraint in graph.constraints:
        sequence = constraint.sequence
        for at, element in enumerate(sequence):
            if element not in numbers:
                continue
            left = len(sequence) - 1 - at
            found[numbers[element]] = Place(
                constraint.name,
                _entry(graph, element, at),
                numbers[sequence[at - 2]] if at >= 2 else None,
                _exit(graph, element, left),
            )
    return found


def alone(graph: Graph, task: str) -> tuple[str, ...]:
    """The constraints whose sequence is nothing but this task, if its items can be followed."""
    if graph.task(task).latency_kind == "read_write":
        return ()
    return tuple(one.name for one in graph.constraints if one.sequence == (task,))


def _entry(graph: Graph, stream: str, at: int) -> Entry:
    if at == 0:
        return "due" if graph.task(graph.stream(stream).sender).kind == "source" else "emitted"
    return "taken" if at == 1 else "before"


def _exit(graph: Graph, stream: str, left: int) -> Exit | None:
    """`left` is how many elements come after the stream."""
    if left == 0:
        return "taken"
    gathers = graph.task(graph.stream(stream).receiver).latency_kind == "read_write"
    return "done" if left == 1 and not gathers else None
