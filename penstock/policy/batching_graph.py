"""The part of a runtime graph that one manager looks after: replicas of tasks, and channels between them."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from penstock.stats.snapshot import ConstraintSpec, Snapshot

K = TypeVar("K")
V = TypeVar("V")


class Replica(NamedTuple):
    """One replica of a task."""

    task: str
    number: int


class Channel(NamedTuple):
    """One sending and one receiving replica of a stream."""

    stream: str
    sender: Replica
    receiver: Replica


class RuntimeGraph(NamedTuple):
    """The replicas of each task and the channels of each stream, by the names of task and stream."""

    replicas: Mapping[str, frozenset[Replica]]
    channels: Mapping[str, frozenset[Channel]]

    def merged(self, other: "RuntimeGraph") -> "RuntimeGraph":
        """Everything that is in one of the two."""
        return RuntimeGraph(_union(self.replicas, other.replicas), _union(self.channels, other.channels))


def average_graph(snapshot: Snapshot, constraint: ConstraintSpec) -> RuntimeGraph:
    """A constraint's graph with one replica for each task, the average one, as a snapshot describes it."""
    streams = [snapshot.stream(name) for name in constraint.streams()]
    names = {*constraint.tasks(), *(s.sender for s in streams), *(s.receiver for s in streams)}
    replicas = {name: frozenset({Replica(name, 0)}) for name in names}
    channels = {
        s.name: frozenset({Channel(s.name, Replica(s.sender, 0), Replica(s.receiver, 0))}) for s in streams
    }
    return RuntimeGraph(replicas, channels)


def _union(left: Mapping[K, frozenset[V]], right: Mapping[K, frozenset[V]]) -> dict[K, frozenset[V]]:
    empty: frozenset[V] = frozenset()
    return {key: left.get(key, empty) | right.get(key, empty) for key in [*left, *right]}
