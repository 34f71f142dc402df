"""What the sources of a flow read: their splits, where each begins, and which replica reads it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from penstock.epochs.batches import POSITIONS_VERSION, Positions
from penstock.flow.graph import Graph
from penstock.flow.layers import Layout
from penstock.io.protocol import GrowingSource
from penstock.io.splits import dealt
from penstock.spark.checkpoint import Splits
from penstock.wire.ids import check_distinct
from penstock.wire.orders import Position

if TYPE_CHECKING:
    from penstock.io.protocol import Source


class DealtSplits(msgspec.Struct, frozen=True):
    """The splits that a replica of a source reads."""

    source: str
    splits: list[str]


class Reading:
    """The splits of all sources. `starts` are the positions of those that no commit knows."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._sources = {
            task.name: cast("Source[Any]", task.body) for task in graph.tasks if task.kind == "source"
        }
        self._check_ids({name: list(source.splits) for name, source in self._sources.items()})
        self.starts = {
            name: {split: Position(0, source.start(split)) for split in source.splits}
            for name, source in self._sources.items()
        }

        self._known: Splits = {}

    def begin_at(self, known: Splits) -> None:
        """A run begins at these positions, not at what Spark knows."""
        self._known = known

    @property
    def look_every_s(self) -> float | None:
        """How often somebody should look for splits that were added; None if none can be."""
        every_s = [source.discover_every_s for source in self._growing().values()]
        return min((one_s for one_s in every_s if one_s is not None), default=None)

    def discover(self) -> dict[str, dict[str, Position]]:
        """The splits that are there and not read yet, and where they begin, by source."""
        found = {}
        for name, source in self._growing().items():
            known = self.starts[name]
            added = [split for split in source.discover() if split not in known]
            self._check_ids(
                {**{one: list(splits) for one, splits in self.starts.items()}, name: [*known, *added]}
            )
            if added:
                found[name] = {split: Position(0, source.start_of_new(split)) for split in added}
        return found

    def add(self, found: Mapping[str, Mapping[str, Position]]) -> None:
        """Read these splits as well, behind the others: none of these goes to another replica."""
        for source, splits in found.items():
            self.starts[source].update(splits)

    def follow(self, known: Splits) -> None:
        """A split that a commit of its source does not know was added after that."""
        for name, source in self._growing().items():
            if name in known:
                added = [split for split in self.starts[name] if split not in known[name]]
                self.add({name: {split: Position(0, source.start_of_new(split)) for split in added}})

    def _growing(self) -> dict[str, GrowingSource]:
        return {name: source for name, source in self._sources.items() if isinstance(source, GrowingSource)}

    def _check_ids(self, splits: Mapping[str, list[str]]) -> None:
        if self._graph.ids:
            origins = [(source, split) for source, names in splits.items() for split in names]
            check_distinct(origins, [stream.name for stream in self._graph.streams])

    def by_partition(self, layout: Layout) -> bytes:
        """For each partition of the first layer what it reads, as JSON for the bridge."""
        found = {
            layout.partition_of(source, replica): DealtSplits(source, splits)
            for source, starts in self.starts.items()
            for replica, splits in enumerate(dealt(list(starts), layout.unit_of(source).pool))
        }
        return msgspec.json.encode([found[partition] for partition in range(len(found))])

    def positions(self) -> bytes:
        """Where all splits begin, in the format of a commit."""
        known = {name: {**starts, **self._known.get(name, {})} for name, starts in self.starts.items()}
        return msgspec.json.encode(Positions(POSITIONS_VERSION, known))
