"""Where the managers of output batching run, and which part of the runtime graph each looks after.

Thesis, algorithms 4-6. Every way an item can take through a constrained sequence belongs to exactly one
manager: an anchor task is chosen, each worker with replicas of it gets a manager, and that one looks after
everything upstream and downstream of these replicas. The anchor is on as many workers as possible (more
managers) and then has as few channels as possible (less overlap).
"""

from collections.abc import Iterable, Mapping, Sequence

from penstock.policy.batching_graph import Channel, Replica, RuntimeGraph
from penstock.stats.snapshot_structs import ARROW


def place_managers(
    graph: RuntimeGraph, workers: Mapping[Replica, str], sequences: Iterable[Sequence[str]]
) -> dict[str, RuntimeGraph]:
    """Algorithm 4: for each worker with a manager, the subgraph it looks after for all constraints."""
    managers: dict[str, RuntimeGraph] = {}
    for sequence in sequences:
        for worker, subgraph in allocations(graph, workers, sequence).items():
            managers[worker] = managers[worker].merged(subgraph) if worker in managers else subgraph
    return managers


def allocations(
    graph: RuntimeGraph, workers: Mapping[Replica, str], sequence: Sequence[str]
) -> dict[str, RuntimeGraph]:
    """Algorithm 5: one subgraph for each worker that runs replicas of the anchor task."""
    anchor = anchor_task(graph, workers, sequence)
    by_worker: dict[str, set[Replica]] = {}
    for replica in sorted(graph.replicas[anchor]):
        by_worker.setdefault(workers[replica], set()).add(replica)
    return {worker: _expanded(graph, replicas, sequence) for worker, replicas in by_worker.items()}


def anchor_task(graph: RuntimeGraph, workers: Mapping[Replica, str], sequence: Sequence[str]) -> str:
    """Algorithm 6: the most workers, then the fewest channels, then the first in the sequence.

    A sequence of a single stream has no task; its sender stands in.
    """
    tasks = [name for name in sequence if ARROW not in name]
    if not tasks:
        return next(channel.sender.task for channel in graph.channels[sequence[0]])
    return min(
        tasks,
        key=lambda task: (-_worker_count(graph, workers, task), _channel_count(graph, task, sequence)),
    )


def _worker_count(graph: RuntimeGraph, workers: Mapping[Replica, str], task: str) -> int:
    return len({workers[replica] for replica in graph.replicas[task]})


def _channel_count(graph: RuntimeGraph, task: str, sequence: Sequence[str]) -> int:
    channels = (channel for name in sequence for channel in graph.channels.get(name, ()))
    return sum(task in (channel.sender.task, channel.receiver.task) for channel in channels)


def _expanded(graph: RuntimeGraph, anchors: set[Replica], sequence: Sequence[str]) -> RuntimeGraph:
    """RuntimeGraphExpand: what can be reached from the anchors forwards, and what can reach them."""
    streams = [name for name in sequence if ARROW in name]
    channels = _reached(graph, anchors, streams, forwards=True)
    channels |= _reached(graph, anchors, list(reversed(streams)), forwards=False)
    replicas = anchors.union(*({channel.sender, channel.receiver} for channel in channels))
    tasks = {replica.task for replica in replicas}
    return RuntimeGraph(
        {task: frozenset(r for r in replicas if r.task == task) for task in tasks},
        {name: frozenset(c for c in channels if c.stream == name) for name in streams},
    )


def _reached(
    graph: RuntimeGraph, anchors: set[Replica], streams: list[str], *, forwards: bool
) -> set[Channel]:
    reached, found = set(anchors), set()
    for name in streams:
        for channel in graph.channels[name]:
            near, far = (channel.sender, channel.receiver) if forwards else (channel.receiver, channel.sender)
            if near in reached:
                found.add(channel)
                reached.add(far)
    return found
