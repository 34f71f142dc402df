"""What a task sees of the machinery around it."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from penstock.flow.graph import Task
from penstock.flow.record import NO_METADATA, Metadata, Record, metadata_of
from penstock.worker.outbox import Outbox, OutStream

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.wire.ids import ItemId

_NO_HEADERS: Mapping[str, bytes] = MappingProxyType({})


class Context:
    """Given to `open(context)`. What belongs to an item or a batch changes while the task runs."""

    __slots__ = (
        "_outbox",
        "attempt",
        "batch",
        "flow",
        "input",
        "item_id",
        "item_ids",
        "prepared_in",
        "replica",
        "task",
    )

    def __init__(self, flow: str, task: str, replica: int, outbox: Outbox) -> None:
        self.flow = flow
        self.task = task
        self.replica = replica
        self.batch = 0
        self.attempt: str | None = None
        """Name of this start of the flow, where commits are epoch marks."""
        self.prepared_in: Path | None = None
        """Where a sink may put what it prepares, then."""
        self.input: str | None = None
        self.item_id: ItemId | None = None
        self.item_ids: list[ItemId | None] | None = None
        """Those of all items that a batch task is given."""
        self._outbox = outbox

    @property
    def headers(self) -> Mapping[str, bytes]:
        """The headers of the item being processed; to be read only (`out.send` sends other ones)."""
        metadata = self.metadata
        return _NO_HEADERS if metadata is None else MappingProxyType(metadata.headers)

    @property
    def timestamp(self) -> int | None:
        """When the item being processed happened, in milliseconds since 1970, if its source says so."""
        return self._known.timestamp

    @property
    def key(self) -> bytes | None:
        """The key that the source has for the item being processed, if any."""
        return self._known.key

    @property
    def metadata(self) -> Metadata | None:
        """All of these, which what is sent inherits; None if the item has none."""
        return self._outbox.metadata

    @property
    def _known(self) -> Metadata:
        return self.metadata or NO_METADATA


class AwaitedContext(Context):
    """That of an async task: what belongs to an item is that of the call that asks, also after it waited."""

    __slots__ = ("_input", "_item_id", "_metadata")

    def __init__(self, flow: str, task: str, replica: int, outbox: Outbox) -> None:
        self._input: ContextVar[str | None] = ContextVar("input", default=None)
        self._item_id: ContextVar[ItemId | None] = ContextVar("item_id", default=None)
        self._metadata: ContextVar[Metadata | None] = ContextVar("metadata", default=None)
        super().__init__(flow, task, replica, outbox)

    @property
    def metadata(self) -> Metadata | None:
        """Those of the item of the call."""
        return self._metadata.get()

    def describe(self, metadata: Metadata | None) -> None:
        """The item of the call has these."""
        self._metadata.set(metadata)

    def _get_input(self) -> str | None:
        return self._input.get()

    def _set_input(self, stream: str | None) -> None:
        self._input.set(stream)

    def _get_item_id(self) -> "ItemId | None":
        return self._item_id.get()

    def _set_item_id(self, item_id: "ItemId | None") -> None:
        self._item_id.set(item_id)

    input = property(_get_input, _set_input)
    item_id = property(_get_item_id, _set_item_id)


class Out:
    """Where a task puts its results: `out(item)`, or `out(item, "late")` for a named output."""

    def __init__(
        self, task: Task, streams: list[OutStream], outbox: Outbox, on_write: Callable[[], None] | None = None
    ) -> None:
        self._outbox = outbox
        self._on_write = on_write
        self._task = task.name
        self._streams = {
            name: [stream for stream in streams if stream.spec.output == name] for name in task.outputs
        }
        self._first = self._streams[task.outputs[0]] if task.outputs else []

    def __call__(self, item: Any, output: str | None = None) -> None:
        """Send an item to every stream of an output, the first one if none is named."""
        if self._on_write is not None:
            self._on_write()
        for stream in self._first if output is None else self.named(output):
            stream.put(item)

    def many(self, items: list[Any]) -> None:
        """Send items that have neither ids, tags nor keys to every stream of the first output."""
        if not items:
            return
        if self._on_write is not None:
            self._on_write()
        for stream in self._first:
            stream.put_many(items)

    def send(self, record: Record[Any], output: str | None = None) -> None:
        """Send an item with metadata of its own; what the record does not say is as it came."""
        if not isinstance(record, Record):
            raise TypeError(
                f'task "{self._task}": out.send takes a penstock.Record, not {record!r:.80}; or use out(item)'
            )
        outbox = self._outbox
        before = outbox.metadata
        outbox.describe(metadata_of(record, before))
        try:
            self(record.value, output)
        finally:
            outbox.metadata = before

    def named(self, output: str) -> list[OutStream]:
        """The streams of an output that the task declares."""
        try:
            return self._streams[output]
        except KeyError:
            declared = ", ".join(self._streams) or "none"
            raise LookupError(
                f'task "{self._task}" has no output "{output}"; it declares {declared}'
            ) from None
