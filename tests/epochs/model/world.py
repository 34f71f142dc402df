"""All processes and channels of a flow, and every step that one of them could take next."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar

import msgspec

from penstock.epochs.errors import LogError, SupersededError
from penstock.epochs.state import NotOwnedError
from penstock.epochs.tables import even_table, table_of
from penstock.testing.storage import MemoryStorage
from tests.epochs.model.check import ViolationError, check_end, check_entry, check_log, positions_of
from tests.epochs.model.driver import Driver
from tests.epochs.model.graph import GROUPS, Graph
from tests.epochs.model.messages import (
    Channel,
    Done,
    Envelope,
    Handover,
    Order,
    StageKey,
    Tables,
)
from tests.epochs.model.outside import Outside
from tests.epochs.model.rules import Rules
from tests.epochs.model.source import Source
from tests.epochs.model.stage import Stage

WAITING = 2
"""Envelopes that a bridge reads ahead of its worker."""

PATIENCE = 5
"""How often another step is looked for in place of a slow one."""

LinkKey = tuple[int | str, ...]
Step = Callable[[], None]
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds a flow: sizes of channels and stores, and how often which things happen to it."""

    graph: Graph
    room: int = 2
    limit: int = 100
    faults: tuple[str, ...] = ()
    fault_rate: float = 0.02
    slow: str = "nothing"
    """What is seldom done: the steps of that name."""
    by_entry: bool = False
    """State that moves is read from the entry of its epoch, as the runtime does it, and not handed over."""


class World:
    """`steps` are what may happen next; who runs it chooses."""

    def __init__(self, setting: Setting, rules: Rules) -> None:
        self.setting, self.graph, self.rules = setting, setting.graph, rules
        self.limit = setting.limit
        self.storage = MemoryStorage()
        self.outside = Outside(idempotent=rules.commit_is_idempotent)
        self.written: list[tuple[str | int, ...]] = []
        self.read_positions: dict[StageKey, int] = {}
        self.pools = {task.name: task.pool for task in self.graph.tasks}
        self.keys: list[StageKey] = []
        self.stages: dict[StageKey, Stage] = {}
        self.sources: dict[StageKey, Source] = {}
        self.links: dict[LinkKey, deque[Envelope]] = {}
        self.late: list[tuple[StageKey, int, dict[int, Done]]] = []
        self.asleep: Driver | None = None
        self.finished = self.stopping = False
        self.longest_void = 0
        self.commits = 0
        self.driver = Driver(self)
        self.begin()

    # Starts

    def begin(self) -> None:
        """All processes of an attempt, from the newest entry."""
        driver = self.driver
        entry = driver.log.entry
        for handle in entry.handles if self.rules.commit_again_at_start else ():
            self.outside.commit(handle)
        if self.rules.abort_at_start:
            self.outside.abort(driver.attempt)
        before = self.stages
        tables: Tables = {
            task.name: entry.tables[task.name]
            if entry.pools == self.pools
            else even_table(next_version(entry.tables), self.pools[task.name], GROUPS)
            for task in self.graph.of_kind("keyed")
        }
        driver.tables = tables
        if self.rules.attempt_in_envelopes:
            self.links.clear()
        self.orders: list[tuple[StageKey, Order]] = []
        self.handovers: list[Handover] = []
        self.pausing: set[StageKey] = set()
        self.lost_order = False
        self.keys = [(t.name, n) for t in self.graph.tasks for n in range(self.pools[t.name])]
        self.sources, self.stages = {}, {}
        positions: Mapping[str, Mapping[str, int]] = positions_of(entry)
        for key in self.keys:
            if self.graph.task(key[0]).kind == "source":
                position = positions.get(key[0], {}).get(str(key[1]), 0)
                if not self.rules.one_log:
                    position = self.read_positions.get(key, position)
                self.sources[key] = Source(self, key, driver.attempt, tables, position)
            else:
                stage = Stage(self, key, driver.attempt, tables, entry)
                self.stages[key] = stage
                old = before.get(key)
                kept = old is not None and old.state.groups == stage.state.groups
                if old is not None and kept and not self.rules.start_drops_memory:
                    stage.state = old.state

    def outlets(self) -> list[Source | Stage]:
        return [*self.sources.values(), *self.stages.values()]

    def outlet(self, key: StageKey) -> Source | Stage:
        return self.sources[key] if key in self.sources else self.stages[key]

    # Who is joined to whom

    def receivers(self, stream: int, sender: int) -> list[int]:
        if self.graph.streams[stream].wiring == "forward":
            return [sender]
        return [*range(self.pools[self.graph.streams[stream].receiver])]

    def channels(self, key: StageKey) -> list[Channel]:
        """The whole pools of all senders; of a forward stream the twin."""
        return [
            (number, sender)
            for number in self.graph.inputs(key[0])
            for sender in range(self.pools[self.graph.streams[number].sender])
            if key[1] in self.receivers(number, sender)
        ]

    def active_at_first(self, stream: int) -> int:
        receiver = self.graph.task(self.graph.streams[stream].receiver)
        return 1 if receiver.kind == "map" else self.pools[receiver.name]

    def sends_now(self, channel: Channel) -> bool:
        sender = self.outlet((self.graph.streams[channel[0]].sender, channel[1]))
        return isinstance(sender, Source) or sender.running

    def link(self, envelope: Envelope) -> deque[Envelope]:
        stream = self.graph.streams[envelope.stream]
        key: LinkKey = (stream.receiver, envelope.receiver)
        if not stream.relayed:
            key = (stream.receiver, envelope.receiver, envelope.stream, envelope.sender)
        return self.links.setdefault(key, deque())

    def has_room(self, envelope: Envelope) -> bool:
        return len(self.link(envelope)) < self.setting.room

    def fail(self, words: str) -> None:
        raise ViolationError(words)

    # What may happen

    def steps(self) -> list[tuple[str, Step]]:
        """Every step that some process could take now, with its name."""
        found: list[tuple[str, Step]] = []
        for key, link in self.links.items():
            stage = self.stages.get((str(key[0]), int(key[1])))
            if link and stage is not None and self._reads(stage, link[0]):
                found.append((stage.key[0], partial(self._deliver, stage, link)))
        for outlet in self.outlets():
            if outlet.can_ship() and (outlet.alive or outlet.outbound):
                found.append(("", outlet.ship))
            if outlet.reports.keys() - self.driver.reports.epochs(outlet.key):
                found.append(("", partial(self._report, outlet)))
            if outlet.key in self.driver.unanswered:
                found.append(("commit", partial(self._commit, outlet)))
        for source in self.sources.values():
            if source.can_read():
                found.append(("", source.read))
            if source.can_mark():
                found.append(("", source.mark))
            if source.waits_for is not None and self.driver.release(source.waits_for):
                found.append(("", partial(setattr, source, "waits_for", None)))
        for stage in self.stages.values():
            if stage.can_work():
                found.append((f"{stage.key[0]} works", stage.work))
            if stage.can_read_entry():
                found.append(("load", stage.read_entry))
        found += [("", partial(self._hear, n)) for n in range(len(self.orders))]
        found += [("load", partial(self._load, n)) for n in range(len(self.handovers))]
        return found + [("driver", step) for step in self._driver_steps()]

    def _driver_steps(self) -> list[Step]:
        driver = self.driver
        if any(not outlet.alive for outlet in self.outlets()):
            return [self._roll_back]
        verdict = driver.verdict()
        if verdict is False:
            return [self._void]
        if verdict:
            if not self.rules.append_before_commit and not driver.committed_early:
                return [driver.commit_early]
            return [self._append]
        if driver.is_last_committed:
            is_over = not driver.unanswered or not self.rules.alive_until_commit
            return [self._end_batch] if is_over else []
        if driver.can_order():
            return [self._order]
        return [self._void] if self.lost_order else []

    def _reads(self, stage: Stage, envelope: Envelope) -> bool:
        if not self.rules.reading_never_stops and stage.blocks(envelope):
            return False
        return len(stage.sequence) < WAITING

    def _deliver(self, stage: Stage, link: deque[Envelope]) -> None:
        stage.receive(link.popleft())

    def _report(self, outlet: Source | Stage) -> None:
        self.late.append((outlet.key, outlet.attempt, dict(outlet.reports)))
        self.driver.hear(outlet.key, outlet.attempt, dict(outlet.reports))

    def _commit(self, outlet: Source | Stage) -> None:
        outlet.answered(self.driver.log.entry.epoch)
        self.driver.answer(outlet.key)

    def _hear(self, number: int) -> None:
        key, order = self.orders.pop(number)
        self.sources[key].hear(order)

    def _load(self, number: int) -> None:
        handover = self.handovers.pop(number)
        taker = self.stages[handover.taker]
        (taker.host or taker).load(handover)

    # The driver

    def _order(self, tables: Tables | None = None) -> None:
        self.driver.wants_last = self.stopping
        order = self.driver.order(tables)
        self.lost_order = False
        self.orders += [(key, order) for key in self.sources]

    def _void(self) -> None:
        self.driver.void()
        self.longest_void = max(self.longest_void, self.driver.voids)

    def _append(self) -> None:
        try:
            self.driver.append()
        except SupersededError:
            self.replace_driver()
            return
        self.commits += 1
        check_entry(self, self.driver.log.entry)
        check_log(self)

    def _end_batch(self) -> None:
        """Stopped for good, or a boundary at which the pools may change."""
        if self.stopping:
            self.finished = True
        else:
            self.driver.begin_attempt()
            self.begin()

    def _roll_back(self) -> None:
        log = self.driver.log
        if self.rules.rollback_is_in_the_log:
            log.begin_again()
        else:
            log.entry = msgspec.structs.replace(log.entry, attempt=log.entry.attempt + 1)
        self.driver.begin_attempt()
        self.begin()

    def replace_driver(self) -> None:
        """Another driver takes over; the old one sleeps and does not know it."""
        self.asleep = self.driver.put_to_sleep()
        self.driver = Driver(self)
        self.begin()

    # Faults, and what users do

    def happen(self, random: Random) -> None:
        """Something from outside."""
        fault = pick(random, self.setting.faults)
        getattr(self, f"_happen_{fault}")(random)

    def _happen_kill(self, random: Random) -> None:
        outlet = pick(random, self.outlets())
        if isinstance(outlet, Stage) and outlet.host is not None:
            outlet = outlet.host
        if self.graph.exact(outlet.key[0]) and self.rules.exact_death_rolls_back:
            outlet.frames.clear()
            outlet.alive = False
        else:
            outlet.die()

    def _happen_crash(self, random: Random) -> None:
        for task in self.graph.tasks:
            if task.kind in ("map", "keyed") and not self._is_forward(task.name):
                self.pools[task.name] = 1 + int(random.random() * task.pool)
        self.replace_driver()

    def _is_forward(self, task: str) -> bool:
        return any(s.wiring == "forward" and task in (s.sender, s.receiver) for s in self.graph.streams)

    def _happen_wake(self, random: Random) -> None:
        """A driver that was replaced goes on."""
        asleep, self.asleep = self.asleep, None
        if asleep is not None and asleep.verdict():
            try:
                asleep.append()
            except SupersededError:
                return
            for handle in asleep.log.entry.handles:
                self.outside.commit(handle)

    def _happen_late(self, random: Random) -> None:
        """A report comes again, or late."""
        if self.late:
            key, attempt, reports = pick(random, self.late)
            if key in self.keys:
                self.driver.hear(key, attempt, reports)

    def _happen_void(self, random: Random) -> None:
        """The driver has waited long enough."""
        order = self.driver.open
        if order is not None and not order.last and not (self.setting.by_entry and order.moves):
            self._void()

    def _happen_lose(self, random: Random) -> None:
        """An order does not reach its source; END is repeated."""
        kept = self.setting.by_entry
        lost = [n for n, (_, order) in enumerate(self.orders) if not (order.last or (kept and order.moves))]
        if lost:
            self.orders.pop(pick(random, lost))
            self.lost_order = True

    def _happen_activate(self, random: Random) -> None:
        """One sender uses another number of replicas, at once."""
        outlet = pick(random, self.outlets())
        for number in outlet.outputs:
            receiver = self.graph.streams[number].receiver
            outlet.active[number] = 1 + int(random.random() * self.pools[receiver])

    def _happen_retire(self, random: Random) -> None:
        """A replica that has nothing to do loses its process."""
        stage = pick(random, [*self.stages.values()])
        is_told = not (stage.buffer and self.rules.retires_prepared)
        ends = stage.task.kind == "map" or (stage.task.kind == "transactional" and is_told)
        if ends and not (stage.sequence or stage.frames or stage.ledger):
            stage.running = False
            stage.buffer = []

    def _happen_chain(self, random: Random) -> None:
        """Two tasks of a unit share a process, or no longer, between two items."""
        streams = [s for s in self.graph.streams if s.wiring == "forward"]
        if not streams:
            return
        stream = pick(random, streams)
        replica = int(random.random() * self.pools[stream.sender])
        head = self.stages.get((stream.sender, replica))
        follower = self.stages[stream.receiver, replica]
        if head is None or not head.is_between_items or not follower.is_between_items:
            return
        if head.hosted is not None:
            head.part()
        elif head.host is None and follower.hosted is None and self._is_drained(head, follower):
            head.join(follower)

    def _is_drained(self, head: Stage, follower: Stage) -> bool:
        under_way = any(link for key, link in self.links.items() if key[:2] == follower.key)
        return not under_way and not follower.store and follower.epoch == head.epoch

    def _happen_compact(self, random: Random) -> None:
        self.driver.compact()

    def _happen_rescale(self, random: Random) -> None:
        """Groups of keyed tasks move."""
        if not self.driver.can_order():
            return
        version = next_version(self.driver.tables)
        owners: dict[str, list[int]] = {}
        for task in self.driver.tables:
            senders = [s.sender for s in self.graph.streams if s.receiver == task and s.wiring == "forward"]
            dealt = [int(random.random() * self.pools[task]) for _ in range(GROUPS)]
            owners[task] = owners[senders[0]] if senders else dealt
        self._order({task: table_of(version, replicas) for task, replicas in owners.items()})

    def _happen_boundary(self, random: Random) -> None:
        """The batch is to end."""
        if self.driver.can_order():
            self.stopping = True
            self._order()
            self.stopping = False

    def run(self, random: Random, steps: int) -> None:
        """Some steps in a random order, with faults; then, without, until the flow is stopped."""
        try:
            for _ in range(steps):
                if self.setting.faults and random.random() < self.setting.fault_rate:
                    self.happen(random)
                self._take_one(random)
            self._finish(random)
        except (LogError, NotOwnedError) as problem:
            raise ViolationError(str(problem)) from problem
        check_end(self)

    def _finish(self, random: Random) -> None:
        for _ in range(20_000):
            self.stopping = all(source.is_dry for source in self.sources.values())
            if self.finished:
                return
            if not self._take_one(random):
                raise ViolationError("nothing can go on")
        raise ViolationError("it does not end")

    def _take_one(self, random: Random) -> bool:
        possible = self.steps()
        if not possible:
            return False
        for _ in range(PATIENCE):
            name, step = pick(random, possible)
            if name != self.setting.slow:
                break
        step()
        return True


def next_version(tables: Tables) -> int:
    """Of the next tables: versions only rise."""
    return 1 + max((table.version for table in tables.values()), default=0)


def pick(random: Random, choices: Sequence[Choice]) -> Choice:
    """The same in every version of Python."""
    return choices[int(random.random() * len(choices))]
