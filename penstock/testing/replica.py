"""A replica as a worker process has it, on a virtual clock and without the process.

The parts are the worker's own: runner, chain, intake, outbox, sourcing. Only what belongs to a process is not
here: sockets, threads, acknowledgements, limits of memory and time.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.io.splits import dealt
from penstock.stats.clock_offset import Exchange
from penstock.testing.jumping_loop import JumpingLoop
from penstock.testing.virtual_clock import Turn, VirtualClock
from penstock.wire.envelope import Envelope
from penstock.wire.orders import Plan, Position, SourceOrder, Switches
from penstock.worker.batch_intake import BatchIntake, intake_of
from penstock.worker.batch_runner import runner_of
from penstock.worker.call_loop import CallLoop
from penstock.worker.chain import Chain
from penstock.worker.outbox import Outbox
from penstock.worker.runner import Fail, Host, Runner, Timed
from penstock.worker.sourcing import Sourcing
from penstock.worker.state_store import StateStore

_SAME_TIME = Exchange(0, 0, 0, 0)
_LOOK_AGAIN_NS = 10_000_000


class Replica:
    """One replica of a task, of those that are chained to it, or of a source."""

    def __init__(
        self,
        plan: Plan,
        tasks: Sequence[str],
        number: int,
        switches: Switches,
        clock: VirtualClock,
        post: Callable[[bytes], None],
        fail: Fail,
        watch: Callable[[Outbox], Timed],
        deliver: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._switches = switches
        self._followers = tasks[1:]
        self._awaited_ns: dict[str, int] = {}
        self._is_over = False
        self._outbox = Outbox(post, number, with_ids=plan.graph.ids)
        self._outbox.time.learn(_SAME_TIME)
        self._outbox.wake_shipper = lambda due_ns: clock.at(due_ns, Turn.SHIP, self._ship)

        host = Host(plan, self._outbox, fail, watch(self._outbox), clock.now_ns, lambda _: None)
        self._loop: CallLoop | None = None
        if plan.graph.task(tasks[0]).concurrency is not None:
            self._loop = CallLoop(JumpingLoop(), self._outbox.task_time)
        self._head = runner_of(host, tasks[0], self._loop)
        self._outbox.streams = list(self._head.streams)
        self._chain = Chain(self._head, self._outbox, lambda name: runner_of(host, name))
        self._outbox.on_unshippable = self._chain.unshippable
        self._intake = intake_of(self._head, self._outbox, [stream.name for stream in plan.graph.streams])
        self._source: _Reading | None = None
        if self._head.task.kind == "source":
            replicas = self._head.task.parallelism.initial
            self._source = _Reading(self._head, self._outbox, clock, replicas, deliver)

    @property
    def runners(self) -> Sequence[Runner]:
        """The tasks that are hosted here."""
        return self._chain.runners

    @property
    def is_dry(self) -> bool:
        """Whether nothing will come from here by itself."""
        return self._source is None or self._source.is_dry

    @property
    def state(self) -> StateStore | None:
        """What its task declares to keep."""
        return self._head.state

    def follow(self, switches: Switches) -> None:
        """From the next batch on."""
        self._switches = switches

    def open(self) -> None:
        """Call `open(context)`."""
        if self._source is None:
            self._head.open()

    def begin(self, batch: int) -> None:
        """Begin a batch."""
        self._outbox.begin_batch()
        self._outbox.emitted_ns = self._clock.now_ns()
        for runner in self._chain.runners:
            runner.context.batch = batch
            runner.lay(self._switches)
            runner.start_timer()
        if len(self._chain.runners) <= len(self._followers):
            self._chain.join(self._followers, self._switches)
        for runner in self._chain.runners:
            self._await_timer(runner)
        if self._source is not None:
            self._source.begin()

    def take(self, envelope: Envelope) -> None:
        """Run the task on items that have arrived; one that takes lists waits for what else arrives now."""
        intake = self._intake
        now_ns = self._outbox.emitted_ns = self._clock.now_ns()
        if not isinstance(intake, BatchIntake):
            intake.process(envelope, now_ns)
            if self._head.state is not None:
                self._await_timer(self._head)
            if self._head.calls is not None:
                self._head.calls.finish()
            return
        intake.gather(0, envelope, now_ns)
        if intake.is_full:
            intake.work_off()

    @property
    def takes_lists(self) -> bool:
        """Whether `work_off` is needed."""
        return isinstance(self._intake, BatchIntake)

    def work_off(self) -> bool:
        """All has arrived that arrives now; whether the task had waited for that."""
        self._outbox.emitted_ns = self._clock.now_ns()
        return isinstance(self._intake, BatchIntake) and self._intake.work_off() > 0

    def end(self, *, last: bool) -> None:
        """End a batch: call `flush()`, at the end of all `close()`, and send what is left."""
        self._is_over = last
        self._outbox.emitted_ns = self._clock.now_ns()
        self._outbox.begin_item(None, None)
        if self._source is None:
            for runner in self._chain.runners:
                runner.flush()
                if last:
                    runner.close()
        self._outbox.flush()

    def release(self) -> None:
        """Close what the end of a process would close."""
        for runner in self._chain.runners:
            runner.failures.close()
        if self._source is not None:
            self._source.close()
        if self._loop is not None:
            self._loop.close()

    def _ship(self) -> None:
        self._outbox.ship_due(self._clock.now_ns())

    def _await_timer(self, runner: Runner) -> None:
        due_ns = runner.next_timer_ns
        if due_ns is None or self._awaited_ns.get(runner.task.name) == due_ns:
            return
        self._awaited_ns[runner.task.name] = due_ns

        def run() -> None:
            is_awaited = self._awaited_ns.get(runner.task.name) == due_ns  # else it is another time by now
            if is_awaited and not self._is_over:
                del self._awaited_ns[runner.task.name]
                self._outbox.emitted_ns = self._clock.now_ns()
                runner.run_timer(sampled=False)
                self._await_timer(runner)

        self._clock.at(due_ns, Turn.TIMER, run)


class _Reading:
    """The splits of a replica of a source, which are read whenever they have something."""

    def __init__(
        self,
        head: Runner,
        outbox: Outbox,
        clock: VirtualClock,
        replicas: int,
        deliver: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._deliver = deliver
        self._failures = head.failures
        self._wake_ns = 0
        self._waits = False
        source: Any = head.task.body
        refuse = head.failures.result_failed
        self._sourcing = Sourcing(head.task, outbox, head.measured, clock.now_ns, self._sleep, refuse)
        splits = dealt(source.splits, replicas)[head.context.replica]
        self._is_alone = len(splits) == 1
        self._start = {split: Position(0, source.start(split)) for split in splits}
        self._began_ns = clock.now_ns()
        self._begun = self.is_dry = False

    def begin(self) -> None:
        """The positions that were reached are those of the next batch."""
        at = self._sourcing.positions if self._begun else self._start
        self._begun = True
        try:
            self._sourcing.begin(SourceOrder(at, self._start, self._began_ns))
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self._failures.broken("reading the source", problem)
        self.is_dry = self._sourcing.is_dry
        if not self._waits and not self.is_dry:
            self._read_at(self._clock.now_ns())

    def close(self) -> None:
        self._sourcing.close()

    def _read_at(self, when_ns: int) -> None:
        self._waits = True
        self._clock.at(when_ns, Turn.READ, self._read)

    def _read(self) -> None:
        """Read what is there, and see when more of it will be."""
        self._waits = False
        clock = self._clock
        while (went_on_ns := self._went_on_ns()) is not None:
            self._deliver()
            if not clock.wait(went_on_ns):
                self._read_at(went_on_ns)
                return
        if not self.is_dry:
            # A source that did not wait by this clock is looked at again as a worker would.
            now_ns = clock.now_ns()
            self._read_at(self._wake_ns if self._wake_ns > now_ns else now_ns + _LOOK_AGAIN_NS)

    def _went_on_ns(self) -> int | None:
        """Read once; the time, if something was read or the time has passed, and there may be more."""
        self._wake_ns = began_ns = self._clock.now_ns()
        sourcing = self._sourcing
        try:
            went_on = sourcing.read()
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self._failures.broken("reading the source", problem)
            return None
        self.is_dry = sourcing.is_dry
        now_ns = self._clock.now_ns()
        return now_ns if not self.is_dry and (went_on or now_ns > began_ns) else None

    def _sleep(self, seconds: float) -> None:
        """Until the first of the splits has something; one that is not to wait does not count."""
        now_ns = self._clock.now_ns()
        wake_ns = now_ns + round(seconds * 1e9)
        if wake_ns <= now_ns or (self._is_alone and self._clock.wait(wake_ns)):
            return
        self._wake_ns = wake_ns if self._wake_ns <= now_ns else min(self._wake_ns, wake_ns)
