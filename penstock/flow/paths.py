"""Paths through a graph as sequences of tasks and streams, alternating."""

from penstock.flow.graph import Graph


def following(graph: Graph, element: str) -> tuple[str, ...]:
    """What may come after a task (its streams) or a stream (its receiver) in a sequence."""
    if "->" in element:
        return (graph.stream(element).receiver,)
    return tuple(stream.name for stream in graph.outputs_of(element))


def connected(graph: Graph, element: str, successor: str) -> bool:
    """Whether `successor` may come directly after `element` in a sequence."""
    return successor in following(graph, element)


def paths_between(graph: Graph, start: str, end: str, *, limit: int) -> list[tuple[str, ...]]:
    """Up to `limit` paths from one element to another, both included.

    Only elements from which `end` can be reached are entered, so no step is in vain and the search takes
    time in proportion to what it returns, although a graph can have exponentially many paths.
    """
    leading = _leading_to(graph, end)
    if start not in leading:
        return []
    found: list[tuple[str, ...]] = []
    stack: list[tuple[str, ...]] = [(start,)]
    while stack and len(found) < limit:
        path = stack.pop()
        if path[-1] == end:
            found.append(path)
            continue
        stack.extend((*path, step) for step in reversed(following(graph, path[-1])) if step in leading)
    return found


def _leading_to(graph: Graph, end: str) -> set[str]:
    leading = {end}
    for task in reversed(graph.tasks):  # receivers before senders: one pass is enough
        for stream in graph.outputs_of(task.name):
            if stream.receiver in leading:
                leading.add(stream.name)
        if any(stream.name in leading for stream in graph.outputs_of(task.name)):
            leading.add(task.name)
    return leading
