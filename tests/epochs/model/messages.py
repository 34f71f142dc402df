"""What is sent: envelopes with an item or a mark, orders of the driver, reports of the stages."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.epochs.entries import Handle, StateFile
from penstock.epochs.state import Handed
from penstock.epochs.tables import Table
from tests.epochs.model.graph import Item

FOREVER = 10**9
"""The watermark of what sends nothing any more."""

Tables = Mapping[str, Table]
Moved = Mapping[str, frozenset[int]]
StageKey = tuple[str, int]
Channel = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Order:
    """The driver wants a mark. `quiet`: sources wait for its end; `last`: they read no more in this batch.

    `moved`: by task, the groups that had another owner in some table since the one that is committed.
    """

    attempt: int
    epoch: int
    tables: Tables
    moved: Moved
    quiet: bool = False
    last: bool = False

    @property
    def moves(self) -> bool:
        return any(self.moved.values())


@dataclass(frozen=True, slots=True)
class Mark:
    """An order on its way with the items."""

    order: Order
    watermark: int

    @property
    def epoch(self) -> int:
        return self.order.epoch


@dataclass(frozen=True, slots=True)
class Envelope:
    """`moved`: the version of the table by which its key has just got another owner, else 0."""

    attempt: int
    stream: int
    sender: int
    receiver: int
    content: Item | Mark
    watermark: int
    moved: int = 0

    @property
    def channel(self) -> Channel:
        return (self.stream, self.sender)


@dataclass(frozen=True, slots=True)
class Done:
    """What a stage has to say of an epoch."""

    epoch: int
    valid: bool = True
    position: int | None = None
    files: tuple[StateFile, ...] = ()
    handles: tuple[Handle, ...] = ()
    last: bool = False


@dataclass(frozen=True, slots=True)
class Handover:
    """State of groups on its way to their new owner."""

    attempt: int
    version: int
    giver: int
    taker: StageKey
    state: Handed
