"""What a source and a sink must offer. Ports only: anything with these members can be used in a flow."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from penstock.flow.record import Record

Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)
Offset: TypeAlias = Any
"""A position in one split of a source: anything JSON can hold. It is written into the checkpoint."""


@dataclass(frozen=True, slots=True)
class SourceClock:
    """When a run began (CLOCK_MONOTONIC, which all processes of a host share) and at which offset.

    A reader that waits for its items' time does it by `now_ns` and `sleep`. In a test the clock may be a
    virtual one (`penstock.testing.run`): then `sleep` returns at once, and `read` is called again when the
    time has come.
    """

    run_start_ns: int
    run_offset: Offset
    now_ns: Callable[[], int] = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep


class Reader(Protocol[Item]):
    """Reads one split, in one worker process, from an offset on."""

    @property
    def offset(self) -> Offset:
        """Position after the last item returned: opening there continues with the next item."""
        ...

    def read(
        self, limit: int, wait_s: float
    ) -> tuple[list[Item] | list[Record[Item]], list[int] | None] | None:
        """Up to `limit` items that are there, and when each was due (CLOCK_MONOTONIC ns), None if unknown.

        Waits at most `wait_s` for the first item; `([], None)` when none came; None when none will ever come.
        Items with headers, a timestamp or a key are `penstock.Record`s: all of one read, or none.
        """
        ...

    def close(self) -> None:
        """Release what the reader holds."""
        ...


class Refused(NamedTuple):
    """Something that was read and could not be made an item: it goes the way of the source's `on_error`."""

    raw: Any
    problem: Exception
    ordinal: int


@runtime_checkable
class RecordReader(Protocol):
    """What a reader offers besides, if its items have numbers of their own and may be undecodable."""

    @property
    def ordinals(self) -> Sequence[int]:
        """The numbers of the items that `read` returned last, growing: they are what ids are made of."""
        ...

    @property
    def refused(self) -> Sequence[Refused]:
        """What `read` found last and could make no item of."""
        ...

    @property
    def lag_items(self) -> int | None:
        """How many items are there and not read, as far as it is known."""
        ...

    def committed(self, offset: Offset) -> None:
        """A batch begins here: what is before is in a commit, or was sent on by a worker that has died."""
        ...


class Source(Protocol[Item]):
    """Declared in the driver, pickled to the workers; the same offset must always give the same items."""

    @property
    def name(self) -> str:
        """Default name of the source in a flow."""
        ...

    @property
    def splits(self) -> Sequence[str]:
        """The names of the parts it is read in; a replica reads one or several of them.

        The checkpoint knows positions by these names: the same name must always mean the same items. A split
        that is new begins at its start; one that is missing is refused.
        """
        ...

    def start(self, split: str) -> Offset:
        """The offset of the first item of a split."""
        ...

    def open(self, split: str, offset: Offset, clock: SourceClock) -> Reader[Item]:
        """A reader that begins at `offset`."""
        ...


class JointReader(Protocol[Item]):
    """Readers of several splits that wait together, as those of one client of a broker do."""

    @property
    def readers(self) -> Mapping[str, Reader[Item]]:
        """By split. They wait for nothing themselves, and are closed together."""
        ...

    def await_any(self, limit: int, wait_s: float) -> Collection[str]:
        """The splits that have something to be read, at most `limit` items of all.

        Waits at most `wait_s` for the first.
        """
        ...

    def close(self) -> None:
        """Release what the readers hold."""
        ...


@runtime_checkable
class JointSource(Protocol):
    """What a source offers besides, if one reader of several splits costs less than several readers."""

    def open_jointly(self, offsets: Mapping[str, Offset]) -> JointReader[Any]:
        """Readers that begin at these offsets, by split."""
        ...


@runtime_checkable
class GrowingSource(Protocol):
    """What a source offers besides, if splits may be added to it while a flow runs; it never runs dry."""

    @property
    def discover_every_s(self) -> float | None:
        """The time between two looks of the driver; None if it is not to look."""
        ...

    def discover(self) -> Sequence[str]:
        """The splits that there are now; those that are known already may be missing."""
        ...

    def start_of_new(self, split: str) -> Offset:
        """Where a split begins that was added after the flow had been started for the first time."""
        ...


class SinkContext(Protocol):
    """What a sink's `open` is given; what belongs to a batch or an item changes while the sink runs."""

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
    def attempt(self) -> str | None:
        """Name of this start of the flow where commits are epoch marks; None where they are boundaries.

        It is "CHECKPOINT-NUMBER": the number is higher at each start on a checkpoint, and always as long.
        """
        ...

    @property
    def prepared_in(self) -> Path | None:
        """A directory of the checkpoint for files that a sink prepares and the driver reads to commit them.

        It may not be there yet. What is in no commit is removed from it at a start. None without epoch marks.
        """
        ...

    @property
    def item_id(self) -> tuple[int, ...] | None:
        """Identity of the item being written, the same in a replay; None unless the flow has `ids=True`."""
        ...

    @property
    def item_ids(self) -> Sequence[tuple[int, ...] | None] | None:
        """Those of all items that `write_many` is given."""
        ...

    @property
    def headers(self) -> Mapping[str, bytes]:
        """Headers of the item being written."""
        ...

    @property
    def timestamp(self) -> int | None:
        """When the item being written happened, in milliseconds since 1970, if its source says so."""
        ...

    @property
    def key(self) -> bytes | None:
        """The key that the source has for the item being written, if any."""
        ...


class DeliveryError(RuntimeError):
    """What was written earlier cannot be delivered: the flow fails, whatever `on_error` says of the item."""


class Sink(Protocol[Item_contra]):
    """The least a sink object offers. `open(context)`, `flush()` and `close()` are called when they exist.

    One with `write_many(items)` gets lists of items instead, of which the same holds.
    """

    def write(self, item: Item_contra) -> None:
        """Take one item. It must survive the death of this process once `write` has returned."""
        ...


@runtime_checkable
class LateSink(Protocol):
    """What a sink offers besides, if items are safe only some time after `write` has returned.

    They are acknowledged when `settle` says so, and come again if the process dies before. Its `flush()` must
    wait for all of them.
    """

    @property
    def written(self) -> int:
        """How many items `write` has taken, those that it raised for not counted."""
        ...

    def settle(self) -> int:
        """How many of them, from the first on, are safe by now; does not wait.

        Raises if one will never be safe.
        """
        ...


class TransactionalSink(Protocol):
    """What a sink offers besides, if its output is to be there exactly once where commits are epoch marks.

    An epoch is what `write` has taken since the `prepare` before; nobody may see it before it is committed.
    Everything that a commit names is committed before a sink is opened in another attempt. So what an earlier
    attempt has prepared and is not committed by then comes again: `open` throws it away.

    Where commits are boundaries (`context.attempt` is None) neither is called, and `flush` must do.
    """

    def prepare(self, epoch: int) -> str | None:
        """An epoch ends, in a worker: make its output survive any crash; what describes it for `commit`.

        None if there is none. A description is written into the log of commits, so it should be short.
        """
        ...

    def commit(self, description: str) -> None:
        """The log has it: let everybody see the output, for good when this returns.

        Called in the driver, on the object that the flow was declared with, which is never opened, or a new
        one of its class. It is called again if the driver may have ended meanwhile, and does nothing then.
        """
        ...


class CommitContext(Protocol):
    """What the driver knows of a sink that it commits for; all of it as in the context of its replicas."""

    @property
    def task(self) -> str:
        """Name of the sink in the flow."""
        ...

    @property
    def attempt(self) -> str:
        """Name of this start of the flow."""
        ...

    @property
    def prepared_in(self) -> Path:
        """Where replicas may have put what they prepared."""
        ...


class Committer(Protocol):
    """Commits in the driver, for one attempt."""

    def commit(self, attempt: int, epoch: int, descriptions: Sequence[str]) -> None:
        """The log has an entry that names these: let everybody see them, for good when this returns.

        They are all of the sink that came since the entry before, in the order of epochs, then of replicas.
        No two entries have the same numbers; compared as a pair they rise. It is called again, with the same
        ones, if the driver may have ended meanwhile, and does nothing then. Raises `FencedError` if another
        driver has taken over.
        """
        ...

    def close(self) -> None:
        """Nothing more is committed; it may be called while another thread is inside `commit`."""
        ...


@runtime_checkable
class ConnectedSink(Protocol):
    """What a transactional sink offers in place of `commit`, if the driver is to be connected for that."""

    def committer(self, context: CommitContext) -> Committer:
        """Before anything is committed in an attempt: connect, and keep out those of earlier attempts.

        Called in the driver, on the object that the flow was declared with, or a new one of its class.
        """
        ...


class FencedError(RuntimeError):
    """Another driver commits for this sink by now: this one must end."""
