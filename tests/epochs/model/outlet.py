"""What sources and stages have in common: frames of a worker, which its bridge ships, and reports."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.epochs.tables import moves
from tests.epochs.model.graph import Item, group_of
from tests.epochs.model.messages import Done, Envelope, Handover, Mark, Order, StageKey, Tables

if TYPE_CHECKING:
    from tests.epochs.model.world import World


@dataclass(frozen=True, slots=True)
class Frame:
    """From a worker to its bridge: something to ship, a mark with its report, or that an input is done.

    `outlet` is whose it is: a worker that hosts another task speaks for that, too.
    """

    outlet: "Outlet"
    envelope: Envelope | None = None
    mark: Mark | None = None
    done: Done | None = None
    handover: Handover | None = None
    acknowledged: int = 0


class Outlet:
    """The sending side of a stage: only here anything of it is emitted, in order."""

    def __init__(self, world: "World", key: StageKey, attempt: int, tables: Tables) -> None:
        self.world, self.key, self.attempt = world, key, attempt
        self.task, self.replica = world.graph.task(key[0]), key[1]
        self.outputs = world.graph.outputs(key[0])
        self.tables = dict(tables)
        self.moved: dict[str, tuple[int, set[int]]] = {}
        self.active = {number: world.active_at_first(number) for number in self.outputs}
        self.turn = 0
        self.frames: deque[Frame] = deque()
        self.outbound: deque[Envelope] = deque()
        self.reports: dict[int, Done] = {}

    def route(self, item: Item, watermark: int) -> None:
        """A worker sends what it makes of an item into all of its streams."""
        for number in self.outputs:
            for put in range(self.world.graph.streams[number].puts):
                self._put(item, watermark, number, put)

    def _put(self, item: Item, watermark: int, number: int, put: int) -> None:
        receiver_of = self.world.graph.streams[number].receiver
        group = group_of(item.key)
        version, groups = self.moved.get(receiver_of, (0, set()))
        moved = version if group in groups else 0
        receivers = self._choose(number, group)
        for copy, receiver in enumerate(receivers):
            count = put if self.world.rules.ids_count_puts else put * len(receivers) + copy
            if not self.world.rules.ids_know_no_replica:
                count += self.replica
            hop = self.world.graph.hop(number, count, copy)
            sent = Item((*item.id, hop), item.key, item.time, item.value)
            self.send(Envelope(self.attempt, number, self.replica, receiver, sent, watermark, moved))

    def _choose(self, number: int, group: int) -> list[int]:
        stream = self.world.graph.streams[number]
        if stream.wiring == "key":
            return [self.tables[stream.receiver].owner(group)]
        if stream.wiring in ("forward", "broadcast"):
            return self.world.receivers(number, self.replica)
        self.turn += 1
        return [self.turn % self.active[number]]

    def send(self, envelope: Envelope) -> None:
        """A worker ships an envelope."""
        self.frames.append(Frame(self, envelope))

    def adopt(self, order: Order) -> None:
        """A worker uses other tables from here on; until its next mark it flags what they have moved."""
        self.moved = {}
        for task, table in order.tables.items():
            old = self.tables[task]
            if table.version > old.version:
                moved = {group for move in moves(old, table) for group in move.groups}
                if self.world.rules.order_names_moved:
                    moved = {*order.moved.get(task, ())}
                self.moved[task] = (table.version, moved)
                self.tables[task] = table

    def can_ship(self) -> bool:
        if self.outbound:
            return self.world.has_room(self.outbound[0])
        return bool(self.frames)

    def ship(self) -> None:
        """The bridge's reading thread: one envelope to its channel, or one frame from the worker."""
        if self.outbound:
            self.world.link(self.outbound[0]).append(self.outbound.popleft())
            return
        frame = self.frames.popleft()
        if frame.envelope is not None:
            self.outbound.append(frame.envelope)
        if frame.handover is not None:
            self.world.handovers.append(frame.handover)
        if frame.mark is not None:
            self.outbound += frame.outlet.multicast(frame.mark)
        if frame.done is not None:
            frame.outlet.reports[frame.done.epoch] = frame.done
            frame.outlet.reported(frame.done)
        if frame.acknowledged:
            frame.outlet.acknowledge(frame.acknowledged)

    def multicast(self, mark: Mark) -> list[Envelope]:
        """A mark for all replicas of all pools that this stage may send to, active or not."""
        return [
            Envelope(self.attempt, number, self.replica, receiver, mark, mark.watermark)
            for number in self.outputs
            for receiver in self.world.receivers(number, self.replica)
        ]

    def reported(self, done: Done) -> None:
        """The bridge has heard of a mark."""

    def acknowledge(self, number: int) -> None:
        """The bridge has heard that inputs are done."""

    def answered(self, epoch: int) -> None:
        """COMMIT(epoch) came: the driver has all that was reported up to there."""
        self.reports = {e: done for e, done in self.reports.items() if e > epoch}
