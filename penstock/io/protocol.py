"""What a source and a sink must offer. Ports only: anything with these members can be used in a flow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Offset: TypeAlias = Any
"""A position in one split of a source: anything JSON can hold. It is written into the checkpoint."""


@dataclass(frozen=True, slots=True)
class SourceClock:
    """When a run began (CLOCK_MONOTONIC, which all processes of a host share) and at which offset."""

    run_start_ns: int
    run_offset: Offset


class Reader(Protocol):
    """Reads one split, in one worker process, from an offset on."""

    @property
    def offset(self) -> Offset:
        """Position after the last item returned: opening there continues with the next item."""
        ...

    def read(self, limit: int, wait_s: float) -> tuple[list[Any], list[int] | None] | None:
        """Up to `limit` items that are there, and when each was due (CLOCK_MONOTONIC ns), None if unknown.

        Waits at most `wait_s` for the first item; `([], None)` when none came; None when none will ever come.
        """
        ...

    def close(self) -> None:
        """Release what the reader holds."""
        ...


class Source(Protocol):
    """Declared in the driver, pickled to the workers; the same offset must always give the same items."""

    @property
    def name(self) -> str:
        """Default name of the source in a flow."""
        ...

    @property
    def splits(self) -> Sequence[str]:
        """The names of the parts it is read in, each by a reader of its own.

        The checkpoint knows positions by these names: the same name must always mean the same items. A split
        that is new begins at its start; one that is missing is refused.
        """
        ...

    def start(self, split: str) -> Offset:
        """The offset of the first item of a split."""
        ...

    def open(self, split: str, offset: Offset, clock: SourceClock) -> Reader:
        """A reader that begins at `offset`."""
        ...


class SinkContext(Protocol):
    """What a sink's `open` is given; `batch` and `item_id` change while the sink runs."""

    @property
    def task(self) -> str:
        """Name of the sink in the flow."""
        ...

    @property
    def replica(self) -> int:
        """Which replica of the sink this is, from 0."""
        ...

    @property
    def batch(self) -> int:
        """Number of the batch being processed; one not committed is processed again under its number."""
        ...

    @property
    def item_id(self) -> tuple[int, ...] | None:
        """Identity of the item being written, the same in a replay; None unless the flow has `ids=True`."""
        ...


class Sink(Protocol):
    """The least a sink object offers. `open(context)`, `flush()` and `close()` are called when they exist."""

    def write(self, item: Any) -> None:
        """Take one item. It must survive the death of this process once `write` has returned."""
        ...
