"""Placement: which layer, partition and unit hosts which replica of which task.

A flow runs as a straight chain of layers. Layer 0 hosts the sources; a unit (tasks joined by forward
streams) is hosted one layer below the lowest unit that feeds it. Partition ids of a layer are handed out
unit by unit; a last one is the relay of the streams that skip the layer.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph, Stream
from penstock.flow.units import Group, join_forward, obstacle


@dataclass(frozen=True, slots=True)
class Unit:
    """Tasks of which one Spark partition hosts one replica each: partitions [first, first + pool)."""

    tasks: tuple[str, ...]
    layer: int
    first: int
    pool: int
    initial: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One stage of Spark: the partitions of its units, then the relay if a stream skips the layer."""

    index: int
    units: tuple[Unit, ...]
    relay: int | None
    partitions: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything of a graph is placed."""

    graph: Graph
    layers: tuple[Layer, ...]

    def unit_of(self, task: str) -> Unit:
        """The unit that hosts the task."""
        for layer in self.layers:
            for unit in layer.units:
                if task in unit.tasks:
                    return unit
        self.graph.task(task)
        raise FlowError(f'task "{task}" of flow "{self.graph.name}" is not placed; lay out its graph anew')

    def place_of(self, task: str) -> int:
        """The position of the task among the tasks of its unit."""
        return self.unit_of(task).tasks.index(task)

    def is_local(self, stream: Stream | str) -> bool:
        """Whether the stream stays inside a unit, so that its items never leave their partition."""
        found = self.graph.stream(stream) if isinstance(stream, str) else stream
        return found.receiver in self.unit_of(found.sender).tasks

    @property
    def slots(self) -> int:
        """Spark task slots needed: all partitions of all layers run at the same time."""
        return sum(layer.partitions for layer in self.layers)

    def partition_of(self, task: str, replica: int) -> int:
        """The partition id, within its layer, of a replica of the task."""
        unit = self.unit_of(task)
        if not 0 <= replica < unit.pool:
            raise FlowError(
                f'task "{task}" of flow "{self.graph.name}" has no replica {replica};'
                f" its pool holds replicas 0 to {unit.pool - 1}"
            )
        return unit.first + replica

    def relay_of(self, layer: int) -> int | None:
        """The partition id of the layer's relay, or None if no stream skips the layer."""
        return self.layers[layer].relay

    def abreast_of(self, task: str) -> tuple[str, ...]:
        """The tasks that must have as many replicas as this one: forward streams connect them."""
        found = {task}
        grown = True
        while grown:
            ends = [
                {stream.sender, stream.receiver}
                for stream in self.graph.streams
                if stream.wiring == "forward" and (stream.sender in found) != (stream.receiver in found)
            ]
            found = found.union(*ends)
            grown = bool(ends)
        return tuple(other.name for other in self.graph.tasks if other.name in found)

    def why_apart(self, stream: Stream | str) -> str | None:
        """Why the ends of a forward stream are in different units; None if they are not, or not forward."""
        found = self.graph.stream(stream) if isinstance(stream, str) else stream
        if found.wiring != "forward" or self.is_local(found):
            return None
        groups = {task.name: frozenset(self.unit_of(task.name).tasks) for task in self.graph.tasks}
        return obstacle(self.graph, groups, found)

    def with_pools(self, pools: Mapping[str, int]) -> "Layout":
        """The same placement with other pool sizes, and partition ids handed out anew.

        The pool of a task is the pool of its unit, and of the units that forward streams keep abreast of it.
        """
        chosen: dict[str, tuple[str, int]] = {}
        for name, pool in pools.items():
            self._check_pool(name, pool)
            for other in self.abreast_of(name):
                earlier, size = chosen.setdefault(other, (name, pool))
                if size != pool:
                    raise FlowError(
                        f'flow "{self.graph.name}": pools of {size} for task "{earlier}" and {pool} for'
                        f' task "{name}", but forward streams connect them; give both the same pool'
                    )
        sizes = {task.name: self.unit_of(task.name).pool for task in self.graph.tasks}
        sizes.update((name, size) for name, (_, size) in chosen.items())
        return _place(self.graph, [unit for layer in self.layers for unit in layer.units], sizes)

    def with_bound(self, constraint: str, latency_ms: float) -> "Layout":
        """The same placement, with another bound for a constraint."""
        graph = self.graph
        names = [known.name for known in graph.constraints]
        if constraint not in names:
            known = f"its constraints are {', '.join(names)}" if names else "it has no constraint"
            raise FlowError(f'flow "{graph.name}" has no constraint "{constraint}"; {known}')
        if not 0 < latency_ms < math.inf:
            raise FlowError(
                f'a bound of {latency_ms:g} ms for constraint "{constraint}" of flow "{graph.name}" cannot be'
                " kept; give one above 0 ms"
            )
        changed = tuple(
            replace(known, latency_ms=latency_ms) if known.name == constraint else known
            for known in graph.constraints
        )
        return replace(self, graph=replace(graph, constraints=changed))

    def _check_pool(self, name: str, pool: int) -> None:
        task = self.graph.task(name)
        what = f'pool of {pool} for {task.kind} "{name}" of flow "{self.graph.name}"'
        if isinstance(pool, bool) or not isinstance(pool, int):
            raise FlowError(f"{what} is not a whole number; give one within 1 to {task.parallelism.max}")
        if not 1 <= pool <= task.parallelism.max:
            raise FlowError(
                f"{what} is outside 1 to {task.parallelism.max}; raise its max or choose a pool within it"
            )
        for other in map(self.graph.task, self.abreast_of(name)):
            replicas = other.parallelism
            if other.kind == "source" and not replicas.min <= pool <= replicas.max:
                which = "" if other is task else f'forward streams connect it with source "{other.name}": '
                declared = (
                    f"{replicas.min} to {replicas.max}" if replicas.elastic else f"always {replicas.min}"
                )
                raise FlowError(
                    f"{what}: {which}the source was declared with {declared} replicas;"
                    " give it another range, as in replicas=elastic(1, 4)"
                )


def lay_out(graph: Graph) -> Layout:
    """Place a graph with the pools its tasks ask for."""
    groups = join_forward(graph)
    depth = _depths(graph, groups)
    units = []
    for group in dict.fromkeys(groups[task.name] for task in graph.tasks):
        members = tuple(task for task in graph.tasks if task.name in group)
        names = tuple(task.name for task in members)
        units.append(
            Unit(names, depth[group], 0, members[0].parallelism.pool, members[0].parallelism.initial)
        )
    return _place(graph, units, {task.name: task.parallelism.pool for task in graph.tasks})


def max_slots(graph: Graph) -> int:
    """Slots needed if every pool were as large as its task may ever become."""
    largest = {task.name: task.parallelism.max for task in graph.tasks}
    return lay_out(graph).with_pools(largest).slots


def _depths(graph: Graph, groups: Mapping[str, Group]) -> dict[Group, int]:
    """layer(u) = 0 for a unit with a source, else 1 + the largest layer of the units that feed u."""
    feeders: dict[Group, set[Group]] = {group: set() for group in groups.values()}
    for stream in graph.streams:
        if groups[stream.sender] != groups[stream.receiver]:
            feeders[groups[stream.receiver]].add(groups[stream.sender])
    depth: dict[Group, int] = {}
    while len(depth) < len(feeders):
        ready = [
            group for group, feeding in feeders.items() if group not in depth and feeding <= depth.keys()
        ]
        assert ready, "units never form a cycle"
        depth.update(
            (group, 1 + max((depth[feeder] for feeder in feeders[group]), default=-1)) for group in ready
        )
    return depth


def _place(graph: Graph, units: list[Unit], pools: Mapping[str, int]) -> Layout:
    layer_of = {name: unit.layer for unit in units for name in unit.tasks}
    layers = []
    for index in range(1 + max(layer_of.values())):
        placed: list[Unit] = []
        first = 0
        for unit in units:
            if unit.layer == index:
                pool = pools[unit.tasks[0]]
                # The wish of the graph, not of the unit at hand: a pool that shrinks and grows again
                # must not forget how many replicas its tasks start with.
                initial = min(graph.task(unit.tasks[0]).parallelism.initial, pool)
                placed.append(Unit(unit.tasks, index, first, pool, initial))
                first += pool
        skipped = any(layer_of[s.sender] < index < layer_of[s.receiver] for s in graph.streams)
        layers.append(Layer(index, tuple(placed), first if skipped else None, first + skipped))
    return Layout(graph, tuple(layers))
