"""How much task latency an item meets before and after each channel of a constrained sequence.

Thesis, algorithms 1 and 2. For a channel e = (a, b) of the sequence, l the latency of a replica:

    e.dsl = b.dsl + l_b,  a.dsl = max of e.dsl over its channels         (downstream, backwards)
    e.usl = a.usl + l_a,  b.usl = max of e.usl over its channels         (upstream, forwards)

Which way items take is not known beforehand, so the largest value counts. Only tasks that are in the sequence
count: it may begin and end with a stream. As printed, algorithm 1 leaves the senders of a last stream without
a value (and algorithm 2 the receivers of a first one); it is 0.
"""

from collections.abc import Mapping, Sequence

from penstock.policy.batching_graph import Channel, Replica, RuntimeGraph
from penstock.stats.snapshot_structs import ARROW


def downstream_latencies_ms(
    graph: RuntimeGraph, sequence: Sequence[str], latency_ms: Mapping[Replica, float]
) -> dict[Channel, float]:
    """For each channel of the sequence: the largest sum of task latencies after it (algorithm 1)."""
    flipped = {
        name: [(c, c.receiver, c.sender) for c in channels] for name, channels in graph.channels.items()
    }
    return _propagated(graph, list(reversed(sequence)), flipped, latency_ms)


def upstream_latencies_ms(
    graph: RuntimeGraph, sequence: Sequence[str], latency_ms: Mapping[Replica, float]
) -> dict[Channel, float]:
    """For each channel of the sequence: the largest sum of task latencies before it (algorithm 2)."""
    straight = {
        name: [(c, c.sender, c.receiver) for c in channels] for name, channels in graph.channels.items()
    }
    return _propagated(graph, list(sequence), straight, latency_ms)


def _propagated(
    graph: RuntimeGraph,
    elements: list[str],
    steps: Mapping[str, list[tuple[Channel, Replica, Replica]]],
    latency_ms: Mapping[Replica, float],
) -> dict[Channel, float]:
    """Carry latency along `elements`; a step is a channel, the end the walk meets first, and the other."""
    constrained = {replica for name in elements if ARROW not in name for replica in graph.replicas[name]}
    at_replica: dict[Replica, float] = {}
    at_channel: dict[Channel, float] = {}
    for name in elements:
        for channel, near, far in steps.get(name, ()):
            own_ms = latency_ms[near] if near in constrained else 0.0
            at_channel[channel] = at_replica.get(near, 0.0) + own_ms
            at_replica[far] = max(at_replica.get(far, 0.0), at_channel[channel])
    return at_channel
