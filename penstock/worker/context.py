"""What a task sees of the machinery around it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.flow.graph import Task
from penstock.worker.outbox import OutStream

if TYPE_CHECKING:
    from penstock.wire.ids import ItemId


class Context:
    """Given to `open(context)`. `input`, `item_id` and `batch` change while the task runs."""

    __slots__ = ("batch", "flow", "input", "item_id", "replica", "task")

    def __init__(self, flow: str, task: str, replica: int) -> None:
        self.flow = flow
        self.task = task
        self.replica = replica
        self.batch = 0
        self.input: str | None = None
        self.item_id: ItemId | None = None


class Out:
    """Where a task puts its results: `out(item)`, or `out(item, "late")` for a named output."""

    def __init__(
        self, task: Task, streams: list[OutStream], on_write: Callable[[], None] | None = None
    ) -> None:
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
        for stream in self._first if output is None else self._named(output):
            stream.put(item)

    def _named(self, output: str) -> list[OutStream]:
        try:
            return self._streams[output]
        except KeyError:
            declared = ", ".join(self._streams) or "none"
            raise LookupError(
                f'task "{self._task}" has no output "{output}"; it declares {declared}'
            ) from None
