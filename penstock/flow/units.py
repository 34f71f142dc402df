"""Which tasks share a Spark partition: the ends of forward streams are joined into units.

Two units are joined only if the graph of units stays acyclic (a layer is one stage, and stages form a
chain) and if a unit with a source reads nothing else (the source's partitions are Spark's input splits:
no shuffle can deliver rows to them).
"""

from penstock.flow.graph import Graph, Stream

Group = frozenset[str]


def join_forward(graph: Graph) -> dict[str, Group]:
    """The group of every task: the largest joins that forward streams allow, upstream joins first."""
    order = {task.name: position for position, task in enumerate(graph.tasks)}
    forward = sorted(
        (stream for stream in graph.streams if stream.wiring == "forward"),
        key=lambda stream: (order[stream.sender], order[stream.receiver]),
    )
    groups = {task.name: frozenset((task.name,)) for task in graph.tasks}
    # One pass leaves no join undone (a property test checks it): whatever lies between the ends of a
    # stream and could be joined with them comes before it in this order.
    for stream in forward:
        if groups[stream.sender] != groups[stream.receiver] and obstacle(graph, groups, stream) is None:
            union = groups[stream.sender] | groups[stream.receiver]
            groups.update((name, union) for name in union)
    return groups


def obstacle(graph: Graph, groups: dict[str, Group], stream: Stream) -> str | None:
    """Why the groups at the ends of a forward stream cannot be joined, or None if they can."""
    union = groups[stream.sender] | groups[stream.receiver]
    for other in graph.streams:
        inside = other.sender in union and other.receiver in union
        if inside and other.wiring != "forward":
            return f'stream "{other.name}" ({other.wiring}) also leads between the two'
    detour = _detour(graph, groups, union)
    if detour is not None:
        return f'the two are also connected by way of "{detour}"'
    sources = [task.name for task in graph.tasks if task.kind == "source" and task.name in union]
    if len(sources) > 1:
        return f'sources "{sources[0]}" and "{sources[1]}" cannot share partitions'
    if sources:
        for other in graph.streams:
            if other.receiver in union and other.sender not in union:
                return (
                    f'stream "{other.name}" cannot be delivered into the partitions of source "{sources[0]}"'
                )
    return None


def _detour(graph: Graph, groups: dict[str, Group], union: Group) -> str | None:
    """A task outside `union` through which it would reach itself: joining closes a cycle.

    Paths are those of the graph of units: who reaches a task reaches whatever shares a partition with it.
    """
    waiting = [stream.receiver for stream in graph.streams if stream.sender in union]
    reached: set[Group] = set()
    while waiting:
        group = groups[waiting.pop(0)]
        if group <= union or group in reached:
            continue
        reached.add(group)
        for stream in graph.streams:
            if stream.sender in group:
                if stream.receiver in union:
                    return stream.sender
                waiting.append(stream.receiver)
    return None
