"""What the sources of a flow read: their splits, where each begins, and which replica reads it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from penstock.flow.graph import Graph
from penstock.flow.layers import Layout
from penstock.io.splits import dealt
from penstock.spark.checkpoint import POSITIONS_VERSION, Positions
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
        return msgspec.json.encode(Positions(POSITIONS_VERSION, self.starts))
