"""Handles: an output of a task, with the wiring its next reader gets, and the end that a sink is."""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, overload

from penstock.flow.codec import Codec, checked_codec
from penstock.flow.errors import FlowError
from penstock.flow.graph import Key, Wiring
from penstock.flow.options import TaskOptions, checked_duration_ms, checked_positive_ms
from penstock.flow.short_forms import count, distinct, reduced, scan
from penstock.flow.typed import Item_co, Made, Many, Other, Processes, Writes, WritesMany

if TYPE_CHECKING:
    from penstock.durations import Duration
    from penstock.flow.flow import Flow

KeyOf = TypeVar("KeyOf", bound=Hashable)
Kept = TypeVar("Kept")
Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Wire:
    """What the user said about the stream to the next reader; None where nothing was said."""

    wiring: Wiring | None = None
    key: Key | None = None
    codec: Codec | None = None
    batch_lifetime_ms: float | None = None
    batch_bytes: int | None = None
    balanced: bool = False


@dataclass(frozen=True, slots=True)
class Output(Generic[Item_co]):
    """An output of a source or task. Wiring methods return a new view; task methods add a reader.

    `output` is None for the first output of the task. `Output[int]` has whole numbers for items, as far as a
    type checker can tell; those of named outputs are not known.
    """

    flow: "Flow" = field(repr=False)
    name: str
    output: str | None = None
    wire: Wire = Wire()

    def __getitem__(self, output: str) -> "Output[Any]":
        """A named output of the same task."""
        self.flow.check_output(self.name, output)
        return replace(self, output=output)

    def round_robin(self) -> "Output[Item_co]":
        """Each item to one replica, in turn (the default)."""
        return self._wired("round_robin")

    def balanced(self) -> "Output[Item_co]":
        """Each item to one replica, in turn, but for replicas before which more waits than before others."""
        wired = self._wired("round_robin")
        return replace(wired, wire=replace(wired.wire, balanced=True))

    def by_key(self, key: Callable[[Item_co], KeyOf]) -> "Keyed[Item_co, KeyOf]":
        """All items with the same `key(item)` to the same replica."""
        if not callable(key):
            raise FlowError(f"{self._where()}: by_key takes a function of one item, not {key!r}")
        wired = self._wired("key", key)
        return Keyed(wired.flow, wired.name, wired.output, wired.wire)

    def broadcast(self) -> "Output[Item_co]":
        """Each item to every active replica."""
        return self._wired("broadcast")

    def forward(self) -> "Output[Item_co]":
        """Replica i to replica i, in the same process where the graph allows it."""
        return self._wired("forward")

    def batched(self, lifetime: "Duration", *, bytes: int | None = None) -> Self:  # noqa: A002
        """Ship items together: a batch is at first closed after `lifetime` or at `bytes` bytes."""
        where = f"{self._where()}: batched"
        if bytes is not None and (isinstance(bytes, bool) or not isinstance(bytes, int) or bytes < 1):
            raise FlowError(f"{where}: bytes must be a whole number of at least 1, not {bytes!r}")
        lifetime_ms = checked_duration_ms(lifetime, f"{where}: lifetime")
        return replace(self, wire=replace(self.wire, batch_lifetime_ms=lifetime_ms, batch_bytes=bytes))

    def coded(self, codec: Codec) -> Self:
        """How items become bytes: "pickle" (any object), "bytes" (bytes as they are), "arrow" (record batches
        and tables), or an object with `dumps(item)` and `loads(data)`.
        """
        return replace(self, wire=replace(self.wire, codec=checked_codec(codec, self._where())))

    @overload
    def map(
        self,
        body: Callable[[Item_co | Other], Awaitable[Made]],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Output[Made]": ...

    @overload
    def map(
        self,
        body: Callable[[Item_co | Other], Made],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Output[Made]": ...

    def map(
        self, body: Callable[[Any], Any], *others: "Output[Any] | str", **options: Unpack[TaskOptions]
    ) -> "Output[Any]":
        """Add a task that makes one item of each item."""
        inputs: tuple[Any, ...] = (self, *others)
        return self.flow.map(body, *inputs, **options)

    def flat_map(
        self,
        body: Callable[[Item_co | Other], Many[Made]],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Output[Made]":
        """Add a task that makes any number of items of each item."""
        inputs: tuple[Any, ...] = (self, *others)
        return self.flow.flat_map(body, *inputs, **options)

    @overload
    def filter(
        self, body: Callable[[Item_co], object], *others: str, **options: Unpack[TaskOptions]
    ) -> "Output[Item_co]": ...

    @overload
    def filter(
        self,
        body: Callable[[Item_co | Other], object],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Output[Item_co | Other]": ...

    def filter(
        self, body: Callable[[Any], object], *others: "Output[Any] | str", **options: Unpack[TaskOptions]
    ) -> "Output[Any]":
        """Add a task that passes on the items for which `body(item)` is true."""
        inputs: tuple[Any, ...] = (self, *others)
        return self.flow.filter(body, *inputs, **options)

    def map_batches(
        self,
        body: Callable[[list[Item_co | Other]], Sequence[Made]],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Output[Made]":
        """Add a task that makes one item of each item, and is given all that have arrived, at most `size`."""
        inputs: tuple[Any, ...] = (self, *others)
        return self.flow.map_batches(body, *inputs, **options)

    def flat_map_batches(
        self,
        body: Callable[[list[Item_co | Other]], Sequence[Iterable[Made]]],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Output[Made]":
        """Add a task that makes any number of items of each item, and is given all that have arrived."""
        inputs: tuple[Any, ...] = (self, *others)
        return self.flow.flat_map_batches(body, *inputs, **options)

    def task(
        self,
        body: Processes[Item_co | Other, Made] | Callable[[], Processes[Item_co | Other, Made]],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Output[Made]":
        """Add a task from a class or object with `process(item, out)`."""
        inputs: tuple[Any, ...] = (self, *others)
        return self.flow.task(body, *inputs, **options)

    def sink(
        self,
        body: Callable[[Item_co | Other], object]
        | Writes[Item_co | Other]
        | WritesMany[Item_co | Other]
        | Callable[[], Writes[Item_co | Other]]
        | Callable[[], WritesMany[Item_co | Other]],
        *others: "Output[Other] | str",
        **options: Unpack[TaskOptions],
    ) -> "Sink":
        """Add a sink: a function of one item, or a class or object with `write(item)` or `write_many`."""
        inputs: tuple[Any, ...] = (self, *others)
        return self.flow.sink(body, *inputs, **options)

    def _wired(self, wiring: Wiring, key: Key | None = None) -> "Output[Item_co]":
        if self.wire.wiring is not None:
            raise FlowError(
                f"{self._where()} is already wired {self.wire.wiring}; choose one wiring for each reader"
            )
        return replace(self, wire=replace(self.wire, wiring=wiring, key=key))

    def _where(self) -> str:
        shown = self.name if self.output is None else f"{self.name}.{self.output}"
        return f'output "{shown}" of flow "{self.flow.name}"'


@dataclass(frozen=True, slots=True)
class Keyed(Output[Item_co], Generic[Item_co, KeyOf]):
    """An output whose items go by their keys: what people most often do with them, in one call."""

    def count(self, **options: Unpack[TaskOptions]) -> Output[tuple[KeyOf, int]]:
        """For each item its key, and how many items of that key there have been."""
        return self.flow.task(count(), self, **options)

    def reduce(
        self, function: Callable[[Item_co, Item_co], Item_co], **options: Unpack[TaskOptions]
    ) -> Output[tuple[KeyOf, Item_co]]:
        """For each item its key, and `function(what came of those before, item)`; of the first the item."""
        return self.flow.task(reduced(self._function(function, "reduce")), self, **options)

    def scan(
        self,
        function: Callable[[Kept, Item_co], tuple[Kept, Made]],
        initial: Kept,
        **options: Unpack[TaskOptions],
    ) -> Output[Made]:
        """For each item an output: `function(state, item)` returns the state of its key and the output."""
        return self.flow.task(scan(self._function(function, "scan"), initial), self, **options)

    def distinct(self, within: "Duration", **options: Unpack[TaskOptions]) -> Output[Item_co]:
        """The first item of each key, and again the first one after `within`."""
        within_ms = checked_positive_ms(within, f"{self._where()}: distinct: within")
        return self.flow.task(distinct(within_ms), self, **options)

    def _function(self, function: Function, form: str) -> Function:
        if not callable(function):
            raise FlowError(f"{self._where()}: {form} takes a function of two arguments, not {function!r}")
        return function


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink; nothing can read it, but a constraint can end with it."""

    flow: "Flow" = field(repr=False)
    name: str
