"""A stage: the bridge that aligns its channels, and the worker behind it."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.epochs.entries import Handle
from penstock.epochs.state import Handed, KeyedState
from penstock.epochs.state_files import restore, write_changes
from penstock.epochs.tables import Move, moves
from tests.epochs.model.graph import Item, group_of
from tests.epochs.model.messages import (
    FOREVER,
    Channel,
    Done,
    Envelope,
    Handover,
    Mark,
    StageKey,
    Tables,
)
from tests.epochs.model.outlet import Frame, Outlet

if TYPE_CHECKING:
    from penstock.epochs.entries import Entry
    from tests.epochs.model.world import World


@dataclass(frozen=True, slots=True)
class Given:
    """What a bridge gives its worker: an item, a mark or handed state, and how far event time is."""

    content: Item | Mark | Handed
    watermark: int
    valid: bool = True
    channel: Channel | None = None
    task: str = ""


class Stage(Outlet):
    """One replica of a task that is no source."""

    def __init__(self, world: "World", key: StageKey, attempt: int, tables: Tables, entry: "Entry") -> None:
        super().__init__(world, key, attempt, tables)
        rules = world.rules
        self.exact = world.graph.exact(key[0])
        self.aligns = self.exact and (rules.upstream_aligns or self.task.kind != "map")
        self.marked: dict[Channel, int] = dict.fromkeys(world.channels(key), 0)
        self.marks: dict[int, Mark] = {}
        self.times: dict[Channel, int] = dict.fromkeys(self.marked, -1)
        self.epoch = 0
        self.passing: set[int] = set()
        self.store: list[Envelope] = []
        self.held: list[Envelope] = []
        self.awaited: set[StageKey] = set()
        self.early: list[Handover] = []
        self.event_time = -1
        self.bridge_tables = dict(tables)
        self.sequence: deque[Given] = deque()
        self.ledger: deque[tuple[int, Given]] = deque()
        self.given = 0
        # The worker's own:
        self.alive = True
        self.running = self.task.kind != "map"
        self.host: Stage | None = None
        self.hosted: Stage | None = None
        self.aside: list[Given] = []
        self.aside_marked: set[Channel] = set()
        self.buffer: list[Item] = []
        self.latest = -1
        self.coming: set[int] = set()
        self.coming_with = 0
        self.waiting: list[Item] = []
        self.state = KeyedState([], group_of)
        if self.task.kind == "keyed":
            groups = tables[self.task.name].groups_of(self.replica)
            self.state = KeyedState(groups, group_of)
            self.state.apply(restore(world.storage, entry.files, self.task.name, groups))

    # The bridge: what arrives

    def receive(self, envelope: Envelope) -> None:
        if envelope.attempt == self.attempt or not self.world.rules.attempt_in_envelopes:
            self._arrive(envelope)

    def blocks(self, envelope: Envelope) -> bool:
        """Whether it follows a mark that others lack."""
        marked = self.marked[envelope.channel]
        return self.aligns and marked > self.epoch and marked not in self.passing

    def _arrive(self, envelope: Envelope) -> None:
        if (
            self.blocks(envelope)
            and len(self.store) >= self.world.limit
            and isinstance(envelope.content, Item)
        ):
            self._overflow(self.marked[envelope.channel])
        if self.blocks(envelope):
            self.store.append(envelope)
        else:
            self._pass(envelope)

    def _overflow(self, epoch: int) -> None:
        """The store is full: the pending epoch becomes void, and all pass; with moves the sources pause.

        So they do while state of a committed epoch is on its way: behind this mark nothing is flagged.
        """
        rules = self.world.rules
        moves = self.marks[epoch].order.moves and rules.moves_never_pass
        if moves or (self.awaited and rules.waiting_never_passes):
            self.world.pausing.add(self.key)
            return
        self.passing.add(epoch)
        self._release()

    def _release(self) -> None:
        released, self.store = self.store, []
        for envelope in released:
            self._arrive(envelope)

    def _pass(self, envelope: Envelope) -> None:
        content = envelope.content
        if isinstance(content, Mark):
            self.marks[content.epoch] = content
            self.marked[envelope.channel] = max(self.marked[envelope.channel], content.epoch)
            self._advance(envelope)
            if not self.aligns and not self.world.rules.align_before_ledger:
                self.sequence.append(Given(content, self.event_time, channel=envelope.channel))
            else:
                self._complete()
        elif envelope.moved and self.awaited and self.world.rules.moved_are_held:
            self.held.append(envelope)
        else:
            self._give(envelope)

    def _give(self, envelope: Envelope) -> None:
        assert isinstance(envelope.content, Item)
        self._advance(envelope)
        self.sequence.append(Given(envelope.content, self.event_time, channel=envelope.channel))

    def _advance(self, envelope: Envelope) -> None:
        """Event time: the minimum over all channels; it stands still while moved items are waited for."""
        self.times[envelope.channel] = max(self.times[envelope.channel], envelope.watermark)
        if not (self.awaited and self.world.rules.event_time_is_frozen):
            self.event_time = max(self.event_time, min(self.times.values()))

    def _complete(self) -> None:
        """The mark is there on all channels: it enters the sequence, then what was stored."""
        counted = self.marked
        if not self.world.rules.whole_pool:
            counted = {c: n for c, n in counted.items() if self.world.sends_now(c)} or counted
        if self.world.rules.mark_closes_smaller:
            epoch = min(counted.values())
        else:
            epoch = next(iter(counted.values())) if len(set(counted.values())) == 1 else 0
        if epoch <= self.epoch or (self.awaited and self.world.rules.next_mark_waits):
            return
        mark = self.marks[epoch]
        self.epoch = epoch
        self.world.pausing.discard(self.key)
        coming = self._coming(mark)
        if self.hosted is not None:
            if self.world.rules.head_waits_for_all:
                coming |= self.hosted._coming(mark)
            self.hosted.epoch = epoch
            self.hosted.marked = dict.fromkeys(self.hosted.marked, epoch)
            self.hosted.bridge_tables.update(mark.order.tables)
        valid = epoch not in self.passing or not self.world.rules.full_is_invalid
        self.sequence.append(Given(mark, self.event_time, valid))
        self.awaited = coming
        self.bridge_tables.update(mark.order.tables)
        early, self.early = self.early, []
        for handover in early:
            self.load(handover)
        self._release()

    def _coming(self, mark: Mark) -> set[StageKey]:
        """From whom state has to come that a mark gives to this replica."""
        if self.world.setting.by_entry:
            return set()
        arriving = self._moves(self.bridge_tables, mark)
        return {(self.task.name, move.giver) for move in arriving if move.taker == self.replica}

    def _moves(self, tables: Tables, mark: Mark) -> list[Move]:
        if self.task.kind != "keyed":
            return []
        return moves(tables[self.task.name], mark.order.tables[self.task.name])

    def load(self, handover: Handover) -> None:
        """State has come from a giver, perhaps before the mark that tells of it."""
        task = handover.taker[0]
        if handover.version > self.bridge_tables[task].version:
            self.early.append(handover)
            return
        self.sequence.append(Given(handover.state, self.event_time, task=task))
        self.awaited.discard((task, handover.giver))
        if not self.awaited:
            held, self.held = self.held, []
            for envelope in held:
                assert isinstance(envelope.content, Item)
                self.sequence.append(Given(envelope.content, self.event_time, channel=envelope.channel))
                self.times[envelope.channel] = max(self.times[envelope.channel], envelope.watermark)
            self.event_time = max(self.event_time, min(self.times.values()))
            self._complete()

    # The worker

    def can_work(self) -> bool:
        if self.frames or not self.sequence or not self.alive:
            return False
        if self.coming and isinstance(self.sequence[0].content, Mark) and self.world.rules.next_mark_waits:
            return False
        return self.running or isinstance(self.sequence[0].content, Item) or self.world.rules.idle_answers

    def work(self) -> None:
        given = self.sequence.popleft()
        self.given += 1
        self.ledger.append((self.given, given))
        if isinstance(given.content, Item):
            self.running = True
        self._work_on(given)

    def _work_on(self, given: Given) -> None:
        content = given.content
        if not self.aligns and not self.world.rules.align_before_ledger:
            self._align_in_worker(given)
        elif isinstance(content, Item):
            self._item(content, given.watermark)
        elif isinstance(content, Mark):
            self._mark(content, given)
        else:
            owner = self if self.hosted is None or given.task == self.task.name else self.hosted
            owner.state.take_over(content)
        self.frames.append(Frame(self, acknowledged=self.given))

    def _align_in_worker(self, given: Given) -> None:
        """What the first design did: a worker that sets aside what follows a mark."""
        if isinstance(given.content, Mark):
            assert given.channel is not None
            self.aside_marked.add(given.channel)
            if len(self.aside_marked) == len(self.marked):
                self._mark(given.content, given)
                aside, self.aside, self.aside_marked = self.aside, [], set()
                for earlier in aside:
                    assert isinstance(earlier.content, Item)
                    self._item(earlier.content, earlier.watermark)
        elif given.channel in self.aside_marked:
            self.aside.append(given)
        elif isinstance(given.content, Item):
            self._item(given.content, given.watermark)

    def _item(self, item: Item, watermark: int) -> None:
        self.latest = max(self.latest, watermark)
        if self.task.kind == "keyed":
            if group_of(item.key) in self.coming and self.world.rules.moved_are_held:
                self.waiting.append(item)
                return
            if item.time < self.latest and not self.world.setting.by_entry:
                self.world.fail(f"{item} is late at {self.key}: event time is {self.latest}")
            known = self.state.get(item.key)
            if known is None:
                known = []
                self.state.put(item.key, known)
            known.append(item.id)
            item = Item(item.id, item.key, item.time, len(known))
        if self.task.kind == "transactional":
            self.buffer.append(item)
        elif self.task.kind == "plain":
            self.world.written.append(item.id)
        self.route(item, self.latest)

    def _mark(self, mark: Mark, given: Given) -> None:
        """Write what has changed, prepare, answer, adopt the tables, hand over."""
        self.latest = max(self.latest, given.watermark)
        leaving = self._moves(self.tables, mark) if self.task.kind == "keyed" else []
        handovers: list[Handover] = []
        if not self.world.rules.log_before_hand_over and not self.world.setting.by_entry:
            handovers = self._hand_over(leaving, mark)
        changes = self.state.take_changes()
        file = write_changes(
            self.world.storage, self.task.name, self.replica, self.attempt, mark.epoch, changes
        )
        if self.world.setting.by_entry:
            self._divide(leaving, mark)
        elif self.world.rules.log_before_hand_over:
            handovers = self._hand_over(leaving, mark)
        handles = (self._prepare(mark.epoch),) if self.buffer else ()
        done = Done(mark.epoch, given.valid, None, (file,) if file else (), handles)
        answer = Mark(mark.order, FOREVER if given.watermark == FOREVER else self.latest)
        self.frames += [Frame(self, handover=handover) for handover in handovers]
        self.frames.append(Frame(self, mark=answer, done=done))
        self.adopt(mark.order)
        if self.hosted is not None:
            self.hosted._mark(mark, Given(mark, answer.watermark, given.valid))

    def _hand_over(self, leaving: list[Move], mark: Mark) -> list[Handover]:
        takers = {move.taker for move in leaving if move.giver == self.replica}
        return [
            Handover(
                self.attempt,
                mark.order.tables[self.task.name].version,
                self.replica,
                (self.task.name, taker),
                self.state.hand_over(
                    [g for m in leaving if (m.giver, m.taker) == (self.replica, taker) for g in m.groups]
                ),
            )
            for taker in sorted(takers)
        ]

    # Where state is handed over by the entry of an epoch

    def _divide(self, moved: list[Move], mark: Mark) -> None:
        """What leaves is in files; what comes is in no entry yet."""
        self.state.drop([g for move in moved if move.giver == self.replica for g in move.groups])
        self.coming |= {g for move in moved if move.taker == self.replica for g in move.groups}
        self.coming_with = mark.epoch

    def can_read_entry(self) -> bool:
        entry = self.world.driver.log.entry
        is_there = entry.attempt == self.attempt and entry.epoch >= self.coming_with
        return bool(self.coming) and self.alive and not self.frames and is_there

    def read_entry(self) -> None:
        """What another owner knew of groups, then the items that waited for it."""
        entry = self.world.driver.log.entry
        self.state.own_more(self.coming)
        self.state.apply(restore(self.world.storage, entry.files, self.task.name, self.coming))
        self.coming = set()
        waiting, self.waiting = self.waiting, []
        for item in waiting:
            self._item(item, self.latest)

    def _prepare(self, epoch: int) -> Handle:
        handle = Handle(
            task=self.task.name, replica=self.replica, attempt=self.attempt, epoch=epoch, content="items"
        )
        self.world.outside.prepare(handle, self.buffer)
        self.buffer = []
        return handle

    # Chains

    def send(self, envelope: Envelope) -> None:
        """What is for a task of the same process is worked on at once."""
        if self._is_inside(envelope.stream):
            assert self.hosted is not None
            assert isinstance(envelope.content, Item)
            self.hosted._item(envelope.content, envelope.watermark)
        else:
            super().send(envelope)

    def multicast(self, mark: Mark) -> list[Envelope]:
        return [envelope for envelope in super().multicast(mark) if not self._is_inside(envelope.stream)]

    def _is_inside(self, stream: int) -> bool:
        return self.hosted is not None and self.world.graph.streams[stream].receiver == self.hosted.task.name

    @property
    def is_between_items(self) -> bool:
        """Whether nothing is under way, in the worker or to another task of its unit."""
        waiting = (self.sequence, self.frames, self.outbound, self.held, self.awaited, self.early)
        return self.alive and not any(waiting)

    def join(self, follower: "Stage") -> None:
        """The head's worker takes over what its follower has; from now on both speak through one bridge."""
        follower._move_state()
        follower.frames, follower.outbound = self.frames, self.outbound
        follower.ledger.clear()
        self.hosted, follower.host = follower, self

    def part(self) -> None:
        """The reverse."""
        follower = self.hosted
        assert follower is not None
        follower._move_state()
        follower.frames, follower.outbound = deque(), deque()
        self.hosted = follower.host = None

    def _move_state(self) -> None:
        handed = self.state.hand_over(sorted(self.state.groups))
        if not self.world.rules.chain_takes_changed:
            handed = Handed(handed.groups, handed.values, ())
        self.state = KeyedState([], group_of)
        self.state.take_over(handed)

    def acknowledge(self, number: int) -> None:
        while self.ledger and self.ledger[0][0] <= number:
            self.ledger.popleft()

    def answered(self, epoch: int) -> None:
        """COMMIT: commit all handles up to there, whoever wants to hear it again."""
        if self.task.kind == "transactional":
            self.world.outside.commit_up_to(*self.key, self.attempt, epoch)
        super().answered(epoch)

    def die(self) -> None:
        """A successor gets all that was not acknowledged, in order. (Who has state rolls back instead.)"""
        self.frames.clear()
        self.sequence.extendleft(given for _, given in reversed(self.ledger))
        self.ledger.clear()
        self.aside, self.aside_marked, self.buffer = [], set(), []
        self.latest = -1
        if self.task.kind == "keyed":
            groups = self.bridge_tables[self.task.name].groups_of(self.replica)
            self.state = KeyedState(groups, group_of)
            self.state.apply(
                restore(self.world.storage, self.world.driver.log.entry.files, self.task.name, groups)
            )
