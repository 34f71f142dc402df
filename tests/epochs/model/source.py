"""A split of a source: its worker reads, and marks between two items when the driver wants it."""

from typing import TYPE_CHECKING

from tests.epochs.model.graph import read
from tests.epochs.model.messages import FOREVER, Done, Mark, Order, StageKey, Tables
from tests.epochs.model.outlet import Frame, Outlet

if TYPE_CHECKING:
    from tests.epochs.model.world import World


class Source(Outlet):
    """`position` is the worker's, `restart` what its bridge knows."""

    def __init__(self, world: "World", key: StageKey, attempt: int, tables: Tables, position: int) -> None:
        super().__init__(world, key, attempt, tables)
        self.position = self.restart = position
        self.epoch = self.answered_epoch = 0
        self.orders: list[Order] = []
        self.waits_for: Order | None = None
        self.half_marked = False
        self.alive = True

    @property
    def is_dry(self) -> bool:
        return self.position >= self.world.graph.items

    def can_read(self) -> bool:
        ready = self.alive and not self.frames and self.waits_for is None
        return ready and not self.is_dry and not self.world.pausing

    def read(self) -> None:
        item = read(self.key[0], self.replica, self.position)
        self.position += 1
        self.route(item, item.time)

    def hear(self, order: Order) -> None:
        """An order, by a socket on which it may overtake others: an older one than the last is nothing."""
        if order.attempt == self.attempt:
            self.orders.append(order)
            if not self.world.rules.table_in_mark:
                self.adopt(order)

    def can_mark(self) -> bool:
        if not any(order.epoch > self.epoch for order in self.orders) or self.frames or not self.alive:
            return False
        return not self.is_dry or self.world.rules.dry_answers

    def mark(self) -> None:
        """One frame with the position; the bridge multicasts it. A dry split's bridge does it by itself."""
        order = max(self.orders, key=lambda order: order.epoch)
        watermark = FOREVER if self.is_dry else self.position - 1
        mark = Mark(order, watermark)
        done = Done(order.epoch, position=self.position)
        if not self.world.rules.one_frame:
            all_marks = self.multicast(mark)
            share = all_marks[1:] if self.half_marked else all_marks[:1]
            self.frames += [Frame(self, envelope) for envelope in share]
            self.half_marked = not self.half_marked
            if self.half_marked:
                return
            self.frames.append(Frame(self, done=done))
        else:
            self.frames.append(Frame(self, mark=mark, done=done))
        self.epoch = order.epoch
        self.adopt(order)
        if not self.world.rules.order_kept_until_answered:
            self.orders = []
        if order.quiet or order.last:
            self.waits_for = order

    def reported(self, done: Done) -> None:
        assert done.position is not None
        self.restart = done.position
        self.answered_epoch = done.epoch
        self.orders = [order for order in self.orders if order.epoch > done.epoch]
        self.world.read_positions[self.key] = done.position

    def die(self) -> None:
        """Its successor goes on at the last mark that the bridge has, with the order that nobody answered."""
        self.frames.clear()
        if self.waits_for is not None and self.waits_for.epoch > self.answered_epoch:
            self.waits_for = None
        self.epoch = self.answered_epoch
        self.position = self.restart
        self.half_marked = False
