"""The model of a flow: tasks, streams and constraints, validated and frozen.

`Flow.graph()` makes a `Graph`; placement, the runtime, the statistics and the simulator only read it.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from penstock.flow.codec import Codec
from penstock.flow.errors import FlowError
from penstock.flow.parallelism import Parallelism
from penstock.flow.retries import Retries
from penstock.state import Spec

__all__ = [
    "ITEM_ID",
    "Codec",
    "Constraint",
    "Form",
    "Graph",
    "ItemId",
    "Key",
    "Kind",
    "LatencyKind",
    "OnError",
    "Parallelism",
    "Retries",
    "Stream",
    "Task",
    "Wiring",
]

Kind = Literal["source", "task", "sink"]
Form = Literal[
    "source",
    "map",
    "flat_map",
    "filter",
    "map_batches",
    "flat_map_batches",
    "object",
    "sink_function",
    "sink_object",
    "sink_batches",
]
OnError = Literal["fail", "skip", "dead_letter"]
LatencyKind = Literal["read_ready", "read_write"]
Wiring = Literal["round_robin", "key", "broadcast", "forward"]

DEFAULT_OUTPUT: Final = "out"
DEFAULT_BATCH_BYTES: Final = 65536
DEFAULT_BATCH_SIZE: Final = 1024


class ItemId(Enum):
    """The type of `ITEM_ID`; an enum, because its member stays the same object through pickling."""

    ITEM_ID = "item id"


ITEM_ID: Final = ItemId.ITEM_ID
"""The key of a stream whose items are spread by their deterministic id."""

Key = Callable[[Any], Hashable] | ItemId


@dataclass(frozen=True, slots=True)
class Task:
    """A source, a task or a sink.

    `body` is what the user gave: a source, a function, or an object or class with `process` or `write`
    (a class is instantiated once per replica, without arguments). `defaults` names the fields that the
    user left to Penstock. Without `chain` it never shares a process with another task. `batch_size` is how
    many items a function or `write_many` is given at most, None for what takes one item at a time.

    `concurrency` is how many calls of an async body a replica has open at once, and `ordered` whether their
    results are sent in the order of the items; a plain body has no concurrency. `catch_up_s` is the time in
    which policies should have a source read what has piled up before it. `state` is what the body declares
    to keep, by key or by replica, and `was` the name under which a checkpoint may have it.
    """

    name: str
    kind: Kind
    form: Form
    body: object
    parallelism: Parallelism
    on_error: OnError = "fail"
    latency_kind: LatencyKind = "read_ready"
    every_ms: float | None = None
    outputs: tuple[str, ...] = (DEFAULT_OUTPUT,)
    defaults: tuple[str, ...] = ()
    memory_bytes: int | None = None
    timeout_ms: float | None = None
    chain: bool = True
    batch_size: int | None = None
    concurrency: int | None = None
    ordered: bool = True
    retries: Retries | None = None
    catch_up_s: float | None = None
    state: tuple[Spec, ...] = ()
    was: str | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """The items of one output of `sender` on their way to `receiver`.

    With `keeps_ids` they keep the ids that the sender gives them, instead of getting their own. `balanced` is
    for round robin: a replica with a long queue is passed over.
    """

    name: str
    sender: str
    output: str
    receiver: str
    wiring: Wiring = "round_robin"
    key: Key | None = None
    codec: Codec = "pickle"
    batch_lifetime_ms: float = 0.0
    batch_bytes: int = DEFAULT_BATCH_BYTES
    defaults: tuple[str, ...] = ()
    keeps_ids: bool = False
    balanced: bool = False


@dataclass(frozen=True, slots=True)
class Constraint:
    """Template constraint (S, l, t) of the thesis, section 4.2.

    Over any `window_s` seconds, the `statistic` of the latency of the items that enter `sequence` (names of
    connected tasks and streams, alternating) is at most `latency_ms`, in a `share` of these windows; None
    leaves that to the policy.
    """

    name: str
    sequence: tuple[str, ...]
    latency_ms: float
    statistic: str = "mean"
    window_s: float = 5.0
    defaults: tuple[str, ...] = ()
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """A validated flow. Tasks are in topological order, streams in the order of their senders."""

    name: str
    ids: bool
    tasks: tuple[Task, ...]
    streams: tuple[Stream, ...]
    constraints: tuple[Constraint, ...] = ()

    def task(self, name: str) -> Task:
        """The task, source or sink of that name."""
        for task in self.tasks:
            if task.name == name:
                return task
        known = ", ".join(task.name for task in self.tasks)
        raise FlowError(f'flow "{self.name}" has no task "{name}"; its tasks are {known}')

    def source(self, name: str) -> Task:
        """The source of that name."""
        task = self.task(name)
        if task.kind != "source":
            sources = ", ".join(task.name for task in self.tasks if task.kind == "source")
            raise FlowError(
                f'{task.kind} "{name}" of flow "{self.name}" is no source; its sources are {sources}'
            )
        return task

    def stream(self, name: str) -> Stream:
        """The stream of that name, for example "numbers->is_prime"."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        known = ", ".join(stream.name for stream in self.streams)
        raise FlowError(f'flow "{self.name}" has no stream "{name}"; its streams are {known}')

    def inputs_of(self, task: str) -> tuple[Stream, ...]:
        """The streams that the task receives."""
        return tuple(stream for stream in self.streams if stream.receiver == task)

    def outputs_of(self, task: str) -> tuple[Stream, ...]:
        """The streams that the task sends, of all its outputs."""
        return tuple(stream for stream in self.streams if stream.sender == task)
