"""What the driver tells the workers of a run: the plan once, the start of a batch, switches at any time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.flow.graph import Graph
from penstock.stats.clock_offset import Exchange
from penstock.wire.divisions import Division, Spans
from penstock.wire.routes import MarkedStream, StreamRoute

if TYPE_CHECKING:
    from penstock.epochs.boundary import Place


@dataclass(frozen=True, slots=True)
class Plan:
    """The graph with the users' functions, where dead letters go, and state; the driver pickles it.

    Without `state` nothing of what tasks keep is committed.
    """

    graph: Graph
    dead_letters: str
    state: "Place | None" = None


class Rescale(msgspec.Struct, frozen=True):
    """Keys are divided among `before` replicas up to the mark of an epoch, and among `after` behind it.

    Where they are not divided evenly, a table says how.
    """

    epoch: int
    before: int
    after: int
    table_before: Spans | None = None
    table_after: Spans | None = None

    def at(self, epoch: int) -> Division:
        """How they are divided behind the mark of an epoch."""
        if epoch >= self.epoch:
            return Division(self.after, self.table_after)
        return Division(self.before, self.table_before)


class Switches(msgspec.Struct, frozen=True):
    """What a worker must know of the running flow: addresses, and what may be turned at any time.

    Orders may overtake each other on their way (the start of a batch and a change inside it come by different
    channels), so each has a `version`, and a worker never goes back to an older one.
    """

    routes: dict[str, StreamRoute]
    active: dict[str, int]
    lifetime_ms: dict[str, float]
    sampling: float
    measure_every_s: float = 1.0
    chains: list[list[str]] = []
    paused: list[str] = []
    exact: list[str] = []
    """Tasks on which committed state or output depends: if a worker dies, the flow goes back to a commit."""
    marked: list[MarkedStream] | None = None
    """All streams, where commits are epoch marks; None where they are boundaries."""
    rescales: dict[str, Rescale] = {}
    """Tasks whose keys are changing hands, at an epoch mark."""
    tables: dict[str, Spans] = {}
    """Who owns which keys, of tasks whose keys are not divided evenly."""
    version: int = 0

    def replicas(self, task: str, epoch: int) -> int:
        """Among how many a task's items are divided by those that have passed the mark of an epoch."""
        return self.division(task, epoch).replicas

    def division(self, task: str, epoch: int) -> Division:
        """In which way."""
        rescale = self.rescales.get(task)
        if rescale is not None:
            return rescale.at(epoch)
        return Division(self.active[task], self.tables.get(task))


class Position(msgspec.Struct, frozen=True):
    """Where a split stands: items sent before, the source's own offset, and whether it has run dry."""

    ordinal: int
    offset: Any
    done: bool = False


class SourceOrder(msgspec.Struct, frozen=True):
    """Which splits to read, from where, where the run began with each, and when: time zero of a schedule.

    The time is the flow's (worker/flow_time.py), which no step of a wall clock moves.
    """

    positions: dict[str, Position]
    run_positions: dict[str, Position]
    started_at_ns: int


class Reached(msgspec.Struct, frozen=True):
    """Where a replica of a source stands with each of its splits, and whether nothing will come any more."""

    positions: dict[str, Position]
    done: bool


class Link(msgspec.Struct, frozen=True):
    """What an executor heard of the driver last: an exchange of times, and until when its workers may act.

    Both by the executor's monotonic clock; None if there is no exchange yet, or no end to what they may do.
    """

    exchange: Exchange | None = None
    lease_until_ns: int | None = None


class Verdict(msgspec.Struct, frozen=True):
    """Why an item is put aside: the task at fault, and what it did."""

    task: str
    problem: str


class StartOrder(msgspec.Struct, frozen=True):
    """What the bridge tells a worker at the beginning of a batch."""

    task: str
    replica: int
    batch: int
    switches: Switches
    source: SourceOrder | None = None
    link: Link = Link()
    epoch: int = 0
    """The last that was marked."""
