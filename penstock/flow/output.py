"""Handles: an output of a task, with the wiring its next reader gets, and the end that a sink is."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Unpack, get_args

from penstock.flow.errors import FlowError
from penstock.flow.graph import Codec, Key, Wiring
from penstock.flow.options import TaskOptions, checked_duration_ms, one_of

if TYPE_CHECKING:
    from penstock.durations import Duration
    from penstock.flow.flow import Flow

_CODECS: Final[tuple[Codec, ...]] = get_args(Codec)


@dataclass(frozen=True, slots=True)
class Wire:
    """What the user said about the stream to the next reader; None where nothing was said."""

    wiring: Wiring | None = None
    key: Key | None = None
    codec: Codec | None = None
    batch_lifetime_ms: float | None = None
    batch_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a source or task. Wiring methods return a new view; task methods add a reader.

    `output` is None for the first output of the task.
    """

    flow: "Flow" = field(repr=False)
    name: str
    output: str | None = None
    wire: Wire = Wire()

    def __getitem__(self, output: str) -> "Output":
        """A named output of the same task."""
        self.flow.check_output(self.name, output)
        return replace(self, output=output)

    def round_robin(self) -> "Output":
        """Each item to one replica, in turn (the default)."""
        return self._wired("round_robin")

    def by_key(self, key: Callable[[Any], Hashable]) -> "Output":
        """All items with the same `key(item)` to the same replica."""
        if not callable(key):
            raise FlowError(f"{self._where()}: by_key takes a function of one item, not {key!r}")
        return self._wired("key", key)

    def broadcast(self) -> "Output":
        """Each item to every active replica."""
        return self._wired("broadcast")

    def forward(self) -> "Output":
        """Replica i to replica i, in the same process where the graph allows it."""
        return self._wired("forward")

    def batched(self, lifetime: "Duration", *, bytes: int | None = None) -> "Output":  # noqa: A002
        """Ship items together: a batch is at first closed after `lifetime` or at `bytes` bytes."""
        where = f"{self._where()}: batched"
        if bytes is not None and (isinstance(bytes, bool) or not isinstance(bytes, int) or bytes < 1):
            raise FlowError(f"{where}: bytes must be a whole number of at least 1, not {bytes!r}")
        lifetime_ms = checked_duration_ms(lifetime, f"{where}: lifetime")
        return replace(self, wire=replace(self.wire, batch_lifetime_ms=lifetime_ms, batch_bytes=bytes))

    def coded(self, codec: Codec) -> "Output":
        """How items become bytes: "pickle" (any object), "bytes" (bytes as they are) or "arrow" (tables)."""
        return replace(self, wire=replace(self.wire, codec=one_of(codec, _CODECS, f"{self._where()}: codec")))

    def map(
        self, body: Callable[[Any], Any], *others: "Output | str", **options: Unpack[TaskOptions]
    ) -> "Output":
        """Add a task that makes one item of each item."""
        return self.flow.map(body, self, *others, **options)

    def flat_map(
        self, body: Callable[[Any], Iterable[Any]], *others: "Output | str", **options: Unpack[TaskOptions]
    ) -> "Output":
        """Add a task that makes any number of items of each item."""
        return self.flow.flat_map(body, self, *others, **options)

    def filter(
        self, body: Callable[[Any], object], *others: "Output | str", **options: Unpack[TaskOptions]
    ) -> "Output":
        """Add a task that passes on the items for which `body(item)` is true."""
        return self.flow.filter(body, self, *others, **options)

    def task(self, body: object, *others: "Output | str", **options: Unpack[TaskOptions]) -> "Output":
        """Add a task from a class or object with `process(item, out)`."""
        return self.flow.task(body, self, *others, **options)

    def sink(self, body: object, *others: "Output | str", **options: Unpack[TaskOptions]) -> "Sink":
        """Add a sink: a function of one item, or a class or object with `write(item)`."""
        return self.flow.sink(body, self, *others, **options)

    def _wired(self, wiring: Wiring, key: Key | None = None) -> "Output":
        if self.wire.wiring is not None:
            raise FlowError(
                f"{self._where()} is already wired {self.wire.wiring}; choose one wiring for each reader"
            )
        return replace(self, wire=replace(self.wire, wiring=wiring, key=key))

    def _where(self) -> str:
        shown = self.name if self.output is None else f"{self.name}.{self.output}"
        return f'output "{shown}" of flow "{self.flow.name}"'


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink; nothing can read it, but a constraint can end with it."""

    flow: "Flow" = field(repr=False)
    name: str
