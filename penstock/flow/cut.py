"""The part of a flow that begins at one of its tasks, fed from somewhere else than in the whole flow."""

from collections.abc import Mapping
from dataclasses import replace

from penstock.flow.flow import Flow
from penstock.flow.graph import Graph, Stream, Task, Wiring
from penstock.flow.parallelism import fixed


class Cut(Flow):
    """A flow whose graph was made of that of another one."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.name, ids=graph.ids)
        self._graph = graph

    def graph(self) -> Graph:
        """The graph it was made with."""
        return self._graph


def from_task(graph: Graph, task: str, bodies: Mapping[str, object]) -> Graph:
    """The task and all behind it; `bodies` are the sources that take the place of its input streams, by name.

    Their items keep the ids that the sources give them. A forward or broadcast stream becomes round robin:
    which replica an item went to means nothing in another run.
    """
    kept = {task}
    for stream in graph.streams:  # in the order of their senders, so that all is reached in one go
        if stream.sender in kept:
            kept.add(stream.receiver)
    sources: list[Task] = []
    entering: list[Stream] = []
    for name, body in bodies.items():
        stream = graph.stream(name)
        source = _free_name(f"letters_{len(sources) + 1}", kept)
        sources.append(Task(source, "source", "source", body, fixed(1)))
        wiring: Wiring = "key" if stream.wiring == "key" else "round_robin"
        entering.append(replace(stream, sender=source, output="out", wiring=wiring, keeps_ids=True))
    return Graph(
        graph.name,
        graph.ids,
        (*sources, *(known for known in graph.tasks if known.name in kept)),
        (*entering, *(stream for stream in graph.streams if stream.sender in kept)),
    )


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
