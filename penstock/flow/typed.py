"""What a type checker knows of sources, tasks and sinks, so that it finds a body that does not fit its input.

Only for type checkers: a flow refuses what it cannot use by itself (bodies.py), whatever the annotations say.
"""

from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from penstock.flow.record import Record

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
Item_contra = TypeVar("Item_contra", contravariant=True)
Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)
Other = TypeVar("Other")

Many = Iterable[Made] | Awaitable[Iterable[Made]] | AsyncIterator[Made]
"""What the body of `flat_map` returns: plain, async, or async and yielding."""


class Out(Protocol[Item_contra]):
    """What `process(item, out)` is given: `out(item)`, or `out(item, "late")` for a named output.

    `Out[int]` sends whole numbers to the first output of its task; named outputs take anything. `out.send`
    takes a `Record`: an item with headers, a timestamp or a key of its own.
    """

    @overload
    def __call__(self, item: Item_contra, /) -> None: ...
    @overload
    def __call__(self, item: Any, output: str | None, /) -> None: ...

    @overload
    def send(self, record: "Record[Item_contra]", /) -> None: ...
    @overload
    def send(self, record: "Record[Any]", output: str | None, /) -> None: ...


class Processes(Protocol[Item_contra, Made_co]):
    """The body of a task that is an object."""

    def process(self, item: Item_contra, out: Out[Made_co], /) -> object:
        """Take an item, and send what comes of it."""


class Writes(Protocol[Item_contra]):
    """The body of a sink that is an object."""

    def write(self, item: Item_contra, /) -> object:
        """Take an item."""


class WritesMany(Protocol[Item]):
    """The body of a sink that takes many items at once."""

    def write_many(self, items: list[Item], /) -> object:
        """Take some items, in the order in which they came."""


class Reads(Protocol[Item]):
    """A reader of a source."""

    def read(self, limit: int, wait_s: float, /) -> tuple[list[Item], list[int] | None] | None:
        """Some items, and when they were due."""


class ReadsRecords(Protocol[Item_co]):
    """A reader of a source that gives records."""

    def read(
        self, limit: int, wait_s: float, /
    ) -> "tuple[Sequence[Record[Item_co]], list[int] | None] | None":
        """Some records, and when they were due."""


class GivesRecords(Protocol[Item_co]):
    """A source of records."""

    @property
    def splits(self) -> Sequence[str]:
        """The names of the parts the source is read in, each by a replica of its own."""

    def open(self, split: str, offset: Any, clock: Any, /) -> ReadsRecords[Item_co]:
        """A reader of one of its parts."""


class Readable(Protocol[Item]):
    """A source."""

    @property
    def splits(self) -> Sequence[str]:
        """The names of the parts the source is read in, each by a replica of its own."""

    def open(self, split: str, offset: Any, clock: Any, /) -> Reads[Item]:
        """A reader of one of its parts."""
