"""One task inside a worker: the user's code, its error policy, its output streams and its measurements."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.epochs.entries import Handle
from penstock.epochs.killers import Page, digest_of
from penstock.epochs.prepared import put_away
from penstock.epochs.reports import Marked
from penstock.flow.sequences import places
from penstock.wire.codecs import CodecError, Unread
from penstock.wire.divisions import Division
from penstock.wire.envelope import Envelope, Tag
from penstock.wire.orders import Plan, Switches
from penstock.worker.asking import Give
from penstock.worker.bridged_files import storage_at
from penstock.worker.call_loop import CallLoop
from penstock.worker.calls import Calls
from penstock.worker.context import AwaitedContext, Context, Out
from penstock.worker.failures import Failures
from penstock.worker.flow_time import UNKNOWN_NS
from penstock.worker.key_keeper import KeyKeeper
from penstock.worker.measurements import Measurements
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.state_keeper import Keeper, MarkKeeper, StateKeeper
from penstock.worker.state_store import store_of
from penstock.worker.steps import Body, Step

if TYPE_CHECKING:
    from penstock.epochs.entries import StateFile
    from penstock.io.protocol import LateSink, TransactionalSink

_CAREFUL_NS = 10_000_000_000

Fail = Callable[[dict[str, Any]], None]


class Timed(Protocol):
    """Whoever wants to know when a task is at an item."""

    def timed(self, step: Step, task: str) -> Step:
        """What to call in place of the step of a task."""
        ...

    def timed_batch(self, step: Step, task: str) -> Step:
        """The same for a task that takes lists of items."""
        ...

    def given(self, give: Give, task: str) -> Give:
        """What to call in place of what sends on an answer of an async task."""
        ...

    def pausing(self, pause: Callable[[float], None]) -> Callable[[float], None]:
        """What to call in place of a pause between two tries of an item."""
        ...


class TimerRun(NamedTuple):
    """How long a timer took, without waiting: with the tasks chained behind, and without them."""

    useful_ns: int
    own_ns: int


class Host(NamedTuple):
    """Where the tasks of a worker run: the plan of the flow, the outbox they share, and who is told what."""

    plan: Plan
    outbox: Outbox
    fail: Fail
    timed: Timed | None = None
    now_ns: Callable[[], int] = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep
    page: Page | None = None
    """Where to show the item that is at work, if workers have died."""


class Runner(ABC):
    """A replica of a task. A worker has one, or several when tasks are chained; an async one has a `loop`.

    How it takes items is up to those that extend it.
    """

    def __init__(self, host: Host, name: str, loop: CallLoop | None = None) -> None:
        graph, outbox, timed = host.plan.graph, host.outbox, host.timed
        replica = outbox.replica
        self.task = graph.task(name)
        known = places(graph)
        self.streams = [
            OutStream(outbox, stream, number, known.get(number))
            for number, stream in enumerate(graph.streams)
            if stream.sender == name
        ]
        is_async = self.task.concurrency is not None
        self.context = (AwaitedContext if is_async else Context)(graph.name, name, replica, outbox)
        self.failures = Failures(self.task, self.context, host.plan.dead_letters, host.fail)
        self.measured = Measurements(graph, name, replica, self.streams, self.failures, outbox)
        self._outbox = outbox
        self._now_ns = host.now_ns
        self._every_ns = None if self.task.every_ms is None else round(self.task.every_ms * 1e6)
        self._next_every_ns: int | None = None
        self.follower: Runner | None = None
        """The task that is chained behind this one."""
        self.calls: Calls | None = None
        self.late_sink: LateSink | None = None
        """The body of a sink that delivers later than it takes."""
        self._transactional: TransactionalSink | None = None
        """The body of a sink that prepares what it was given, where commits are epoch marks."""
        place = host.plan.state
        self.context.attempt = None if place is None else place.attempt_name
        self.context.prepared_in = None if place is None else place.prepared_by(name, replica)
        ahead_ns = None if place is None else time.time_ns() - host.now_ns()
        self.state = store_of(graph, self.task, self.context, host.now_ns, ahead_ns=ahead_ns)
        """What the task declares to keep."""
        self._place = place
        self._number = [task.name for task in graph.tasks].index(name)
        self._is_keyed = any(stream.wiring == "key" for stream in graph.inputs_of(name))
        self._keeper: Keeper | KeyKeeper | None = None
        self._born_ns = host.now_ns()
        self._is_blithe = False
        if self.task.kind != "source":
            gathers = self.task.latency_kind == "read_write"
            self._out = Out(self.task, self.streams, outbox, self.measured.wrote if gathers else None)
            self._refuse: Step = _raise_problem
            pause = host.sleep if timed is None else timed.pausing(host.sleep)
            if loop is None:
                self._body = Body(self.task, self.context, self._out, pause=pause, store=self.state)
                if timed is not None:
                    self._body.step = self._watched(timed)
                    self._refuse = timed.timed(self._refuse, name)
            else:
                self._body = Body(self.task, self.context, self._out, settle=loop.settle)
                self.calls = self._calls(loop, timed)
            self.late_sink = self._body.late_sink if self.task.kind == "sink" else None
            if place is not None and place.marks:
                self._transactional = self._body.transactional_sink

    def go_carefully(self, page: Page) -> None:  # noqa: B027 - not all of them can
        """Show the items it is at in this page; one that takes many at once shows none."""

    @abstractmethod
    def link(self, stream: OutStream) -> Callable[[Any], None]:
        """What hands an item of that stream to this task, when it is chained behind another."""

    def _watched(self, timed: Timed) -> Step:
        return timed.timed(self._body.step, self.task.name)

    def _calls(self, loop: CallLoop, timed: Timed | None) -> Calls:
        """How an async task does its items: a step is the beginning of a call."""
        assert isinstance(self.context, AwaitedContext), "the body is async"
        asked = self._body.asked
        if timed is not None:
            asked = asked._replace(give=timed.given(asked.give, self.task.name))
        calls = Calls(self.task, asked, loop, self._outbox, self.context, self.failures, self.measured)
        self.measured.by_calls(calls.slots)
        self._body.step = calls.start
        return calls

    def lay(self, switches: Switches, epoch: int = 0) -> None:
        """Take up the addresses of a batch, which begins behind that epoch."""
        for stream in self.streams:
            stream.lay(switches.routes[stream.spec.name], 0)
        self.adopt(switches, epoch)

    def adopt(self, switches: Switches, epoch: int = 0) -> None:
        """Follow the switches: active receivers, as they are behind that epoch, and batch lifetimes."""
        for stream in self.streams:
            division = switches.division(stream.spec.receiver, epoch)
            stream.activate(division.replicas, division.table)
            stream.lifetime_ns = round(switches.lifetime_ms[stream.spec.name] * 1e6)

    def open(self) -> None:
        """Call `open(context)`."""
        self._guard("open()", self._body.open)

    def take_state(self, division: Division, since: int = 0) -> None:
        """A batch begins: read the state, if the process is new or replicas share the keys in another way.

        It is known from epoch `since` on.
        """
        if self._place is None or (self._keeper is not None and self._keeper.division == division):
            return
        task, replica = self.task.name, self.context.replica
        if self.state is None:
            if self._place.marks and self._is_keyed:
                keys = self._keeper = KeyKeeper(self._place, replica, division)
                self._with_files("looking for its keys", lambda: keys.restore(since))
            return
        kind = MarkKeeper if self._place.marks else StateKeeper
        before = self._keeper if isinstance(self._keeper, Keeper) else None
        keeper = kind(self._place, self.state, task, replica, division, before)
        self._keeper = keeper
        self._with_files("reading its state", lambda: keeper.restore(self.context.batch, since))

    @property
    def awaited(self) -> frozenset[int]:
        """Groups of keys that this replica owns, and whose state is not here yet."""
        return self._keeper.awaited if isinstance(self._keeper, MarkKeeper | KeyKeeper) else frozenset()

    @property
    def awaits_all(self) -> bool:
        """Whether items of other keys, and those without one, have to wait as well."""
        return isinstance(self._keeper, MarkKeeper) and self._keeper.awaits_all

    def move(self, division: Division, epoch: int) -> None:
        """Behind the mark of this epoch keys are divided in this way."""
        keeper = self._keeper
        if isinstance(keeper, MarkKeeper | KeyKeeper) and keeper.division != division:
            self._guard("giving keys away", lambda: keeper.move(division, epoch))

    @property
    def is_taking_in(self) -> bool:
        """Whether more of what is awaited can be had at once."""
        return isinstance(self._keeper, MarkKeeper) and self._keeper.is_taking_in

    def look_for_state(self) -> bool:
        """Take in some of what is awaited, if it is there; whether that was the last of it."""
        keeper = self._keeper
        found: list[bool] = []
        if isinstance(keeper, MarkKeeper | KeyKeeper):
            self._with_files("reading its state", lambda: found.append(keeper.look()))
        return all(found)

    def marked(self) -> None:
        """An epoch has ended within a batch: what was read before a death has come again by and by."""
        self._is_blithe = self._now_ns() - self._born_ns > _CAREFUL_NS

    def commit_state(self, epoch: int) -> Marked:
        """An epoch ends: write what has changed, durably, before anybody hears of it; what to say of it."""
        keeper = self._keeper
        if not isinstance(keeper, Keeper) or self.context.replica >= keeper.replicas:
            return Marked()
        files: list[StateFile] = []
        self._with_files("writing its state", lambda: files.extend(keeper.commit(epoch)))
        return Marked(files=tuple(files), replicas=keeper.replicas)

    def prepare(self, epoch: int) -> tuple[Handle, ...]:
        """Call `prepare(epoch)` of a sink that has it: nobody sees yet what it was given."""
        sink, place = self._transactional, self._place
        if sink is None or place is None:
            return ()
        said: list[str | None] = []
        self._guard("prepare()", lambda: said.append(_description(sink.prepare(epoch))))
        if place.is_remote and (directory := self.context.prepared_in) is not None:
            self._guard("what prepare() left", lambda: put_away(directory, storage_at(place)))
        task, replica = self.task.name, self.context.replica
        return tuple(
            Handle(task=task, replica=replica, attempt=place.attempt, epoch=epoch, content=content)
            for content in said
            if content is not None
        )

    def flush(self) -> None:
        """Call `flush()`: a batch is about to be committed."""
        self._guard("flush()", self._body.flush)
        self._guard("writing dead letters", self.failures.flush)

    def delivered(self) -> int:
        """How many items a late sink has delivered."""
        safe = 0

        def look() -> None:
            nonlocal safe
            assert self.late_sink is not None, "only a late sink settles"
            safe = self.late_sink.settle()

        self._guard("settle()", look)
        return safe

    def close(self) -> None:
        """Call `close()`; what it sends still arrives."""
        self._outbox.begin_item(None, None)
        self._guard("close()", self._body.close)
        self.settle()

    def start_timer(self) -> None:
        """Timers run inside a batch only: between two there is nowhere to send to."""
        if self._every_ns is not None:
            self._next_every_ns = self._now_ns() + self._every_ns

    @property
    def has_timers(self) -> bool:
        """Whether there may ever be something to do without an item."""
        return self._every_ns is not None or self.state is not None

    @property
    def next_timer_ns(self) -> int | None:
        """When `timer(out)` or a timer of a key is to be called; it may turn out that there is none then."""
        of_keys_ns = None if self.state is None else self.state.next_timer_ns
        if of_keys_ns is None or self._next_every_ns is None:
            return self._next_every_ns if of_keys_ns is None else of_keys_ns
        return min(of_keys_ns, self._next_every_ns)

    def run_timer(self, *, sampled: bool) -> TimerRun | None:
        """Call `timer(out)` and timers of keys if it is time."""
        calls = self._due()
        if not calls:
            return None
        # What a timer sends is little and stems from no single item: all of it is timed from here on.
        outbox = self._outbox
        outbox.begin_item(None, UNKNOWN_NS if sampled else None)
        outbox.behind_ns = 0
        useful_before_ns = outbox.task_time.go(time.monotonic_ns())
        for hook, call in calls:
            self._guard(hook, call)
        self.settle()
        useful_ns = outbox.task_time.halt(time.monotonic_ns()) - useful_before_ns
        behind_ns, outbox.behind_ns = outbox.behind_ns, 0
        return TimerRun(useful_ns, max(0, useful_ns - behind_ns))

    def _due(self) -> list[tuple[str, Callable[[], None]]]:
        """Times of `timer(out)` that were missed are not made up for."""
        due_ns = self.next_timer_ns
        if due_ns is None or self._now_ns() < due_ns:
            return []
        calls = self._body.timers()
        late_ns = -1 if self._next_every_ns is None else self._now_ns() - self._next_every_ns
        if late_ns >= 0:
            assert self._next_every_ns is not None
            assert self._every_ns is not None
            self._next_every_ns += self._every_ns * (1 + late_ns // self._every_ns)
            calls.append(("timer()", self._body.timer))
        return calls

    def settle(self) -> None:
        """Nothing of what this task handed on waits any longer for a batch of a task chained behind it."""
        if self.follower is not None:
            self.follower.work_off()

    def work_off(self) -> None:
        """Process what waits for a batch: of this task, which has none, and of those behind it."""
        self.settle()

    def refuse(self, item: Unread) -> None:
        """An item that its codec could not read: an error of this task, in the place of its step."""
        try:
            self._refuse(item)
        except CodecError as problem:
            self.failures.unread(item.data, problem)

    def _with_files(self, what: str, call: Callable[[], None]) -> None:
        """Call what reads or writes files of the checkpoint."""
        assert self._place is not None, "who has a keeper has a checkpoint"
        try:
            call()
        except OSError as problem:
            self.failures.out_of_reach(what, self._place.root, problem)
        except Exception as problem:  # noqa: BLE001 - values are pickled and migrated by users' code
            self.failures.broken(what, problem)

    def _guard(self, hook: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self.failures.broken(hook, problem)


class ItemRunner(Runner):
    """A replica of a task that takes one item at a time, and of a source."""

    def step(self, item: Any) -> None:
        """Process one item, by the error policy if need be."""
        try:
            self._body.step(item)
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self.failures.item_failed(item, problem)

    def time_item(self, envelope: Envelope, tag: Tag, arrived_ns: int, item: Any) -> None:
        """Process one item that is tagged."""
        if self.calls is None:
            self.measured.time_item(envelope, tag, arrived_ns, self.step, item)
        else:
            self.calls.start(item, (envelope, tag, arrived_ns))

    def steps(self, items: list[Any]) -> None:
        """Process many items that need no care: the way of most items, so without a call in between."""
        step = self._body.step
        start = 0
        while start < len(items):
            index = start
            try:
                for index in range(start, len(items)):
                    step(items[index])
                return
            except Exception as problem:  # noqa: BLE001 - users' code may raise anything
                self.failures.item_failed(items[index], problem)
                start = index + 1

    def go_carefully(self, page: Page) -> None:
        """Show each item before it is touched, and put those aside that are condemned, until a commit."""
        caution = None if self._place is None else self._place.caution
        if caution is None or self.task.kind == "source" or self.calls is not None:
            return
        step, context, number = self._body.step, self.context, self._number
        condemned = {bytes.fromhex(digest) for digest in caution.condemned.get(self.task.name, ())}

        def carefully(item: Any) -> object:
            careless = self._is_blithe or context.batch != caution.batch
            if careless or (digest := digest_of(item)) is None:
                return step(item)
            if digest in condemned:
                words = "workers have ended at this item three times"
                self.failures.item_killed(item, words, self.task.on_error)
                return None
            before = page.show(number, digest)
            try:
                return step(item)
            finally:
                page.show_again(before)

        self._body.step = carefully

    def link(self, stream: OutStream) -> Callable[[Any], None]:
        """What hands an item to this task; what it sends stems from that item."""
        outbox, context, measured = self._outbox, self.context, self.measured

        def hand_on(item: Any) -> None:
            before = outbox.descend(stream)
            try:
                context.input = stream.spec.name
                context.item_id = outbox.parent_id
                if outbox.origin_ns is None:
                    measured.chained_in += 1
                    self.step(item)
                else:
                    measured.time_chained(stream, outbox.origin_ns, self.step, item)
            finally:
                outbox.ascend(before)

        return hand_on


def _description(said: object) -> str | None:
    if said is None or isinstance(said, str):
        return said
    raise TypeError(f"prepare(epoch) must return a string or None, not {said!r:.80}")


def _raise_problem(item: Unread) -> None:
    raise item.problem
