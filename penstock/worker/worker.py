"""A replica of a task: one process, one task, batch after batch, until the bridge goes away."""

import ctypes
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from penstock.epochs.boundary import epoch_of
from penstock.epochs.entries import Handle
from penstock.epochs.killers import Page
from penstock.epochs.reports import Marked
from penstock.flow.delivery import is_transactional
from penstock.wire.codecs import coder_of
from penstock.wire.envelope import Envelope, EnvelopeError, decode
from penstock.wire.frames import (
    DATA,
    END,
    ENDED,
    FAILED,
    JOIN,
    MARK,
    START,
    Careful,
    ChannelClosed,
    Inbox,
    Mark,
    at_frame,
    frame,
    full_frame,
    read_data,
    read_mark,
)
from penstock.wire.orders import Link, Plan, StartOrder, Switches, Verdict
from penstock.worker.batch_intake import BatchIntake, intake_of
from penstock.worker.batch_runner import runner_of
from penstock.worker.call_loop import CallLoop, waiting_loop
from penstock.worker.chain import Chain
from penstock.worker.control_line import ControlLine
from penstock.worker.gauge import Gauge, is_timed
from penstock.worker.intake import turn_to
from penstock.worker.lease import Lease, leave
from penstock.worker.measurements import process_report
from penstock.worker.outbox import Outbox
from penstock.worker.runner import Host, Runner
from penstock.worker.sending import Pace
from penstock.worker.settling import Settling
from penstock.worker.shipper import Shipper
from penstock.worker.sourcing import Sourcing
from penstock.worker.waiting import Waiting

_ACK_IDLE_S = 0.05
_ACK_EVERY = 64
# Where senders prefer short queues they must be told soon what is done.
_ACK_EVERY_BALANCED = 8
_ACK_AT_ONCE_BYTES = 2048
_MANY_BYTES = 256
# The last of them waits for milliseconds anyway, and for less where envelopes are fewer.
_CROWDED_BYTES = 1 << 14
_CHAIN_CHECK_S = 0.1
_STATE_CHECK_S = 0.005
_STATE_CHECK_NS = 5_000_000
_SWITCH_INTERVAL_S = 0.0005
_PR_SET_TIMERSLACK = 29
_TIMER_SLACK_NS = 1000


class Worker:
    """The task's thread: takes frames in, runs the task on their items, ends batches."""

    def __init__(
        self,
        plan: Plan,
        order: StartOrder,
        data: socket.socket,
        control: socket.socket,
        inbox: Inbox,
        gauge: Gauge | None,
    ) -> None:
        graph = self._graph = plan.graph
        self._gauge = gauge
        self._inbox = inbox
        self._adopting = threading.Lock()  # orders come to the task's thread and to the control line
        if gauge is not None:
            gauge.begin(order.task)
        self._timed = gauge if gauge is not None and is_timed(graph, order.task) else None
        send = _sender(data)
        self._outbox = Outbox(
            send if self._timed is None else self._timed.sending(send),
            order.replica,
            with_ids=graph.ids,
            gathers=True,
        )
        self._switches = order.switches
        self._loop: CallLoop | None = None
        if graph.task(order.task).concurrency is not None:
            task_time = self._outbox.task_time
            self._loop = CallLoop(waiting_loop(task_time), task_time, inbox, self._timed)
        page = None
        if plan.state is not None and plan.state.caution is not None:
            page = Page(Path(plan.state.beside), order.task, order.replica)
        host = Host(plan, self._outbox, self._fail, self._timed, page=page)
        self._head = runner_of(host, order.task, self._loop)
        self._calls = self._head.calls
        self._outbox.streams = list(self._head.streams)
        self._coders = [coder_of(stream.codec, stream.name) for stream in graph.streams]
        self._intake = intake_of(self._head, self._outbox, [stream.name for stream in graph.streams])
        self._marks = plan.state is not None and plan.state.marks
        self._chain = Chain(
            self._head,
            self._outbox,
            lambda name: runner_of(host, name),
            lambda name: self._marks and is_transactional(graph.task(name)),
        )
        self._outbox.on_unshippable = self._chain.unshippable
        self._settling = Settling(self._outbox)
        self._followed: Switches | None = None
        """The settings by which tasks were chained last."""
        self._follows_at_mark = False
        """Whether that is to be finished at the next mark."""
        self._with_timers: list[Runner] = []
        self._look_at_runners()
        self._joined = threading.Event()
        self._sourcing: Sourcing | None = None
        if self._head.task.kind == "source":
            refuse = self._head.failures.result_failed
            self._sourcing = Sourcing(
                self._head.task,
                self._outbox,
                self._head.measured,
                refuse=refuse,
                before_mark=self._head.failures.flush,
                after_mark=self._follow_mark,
            )
        self._epoch = order.epoch
        self._passed = order.epoch
        """The epoch by which keys are divided: what is sent now is behind its mark."""
        self._waiting = Waiting(graph.streams)
        self._told_full = False
        self._looked_ns = 0
        self._unacknowledged = 0
        balanced = any(stream.balanced for stream in graph.streams if stream.receiver == order.task)
        self._ack_every = _ACK_EVERY_BALANCED if balanced else _ACK_EVERY
        self._ack_at_once_bytes = _ACK_AT_ONCE_BYTES if balanced else sys.maxsize
        self._taken = 0
        self._pace = Pace()
        self._may_gather = self._calls is None and self._timed is None
        self._shipper = Shipper(self._outbox)
        self._lease = Lease(order.link)
        self._line = ControlLine(
            control,
            on_switches=self._adopt,
            on_joined=self._joined.set,
            on_behind=self._hear_of_receivers,
            on_link=self._hear_of_driver,
            lease=self._lease,
            report=self._report,
            taken=lambda: self._taken,
            report_every_s=order.switches.measure_every_s,
        )

    def serve(self, first: StartOrder) -> NoReturn:
        """Batches, for ever; the control line or a closed channel ends the process."""
        self._head.context.batch = first.batch
        if self._sourcing is None:
            self._take_state(first)
            self._head.open()
        self._shipper.start()
        self._line.start()
        order: StartOrder | None = first
        while True:
            while order is None:
                for kind, body in self._inbox.frames():
                    if kind == START:
                        order = msgspec.json.decode(body, type=StartOrder)
                        break
                else:
                    self._inbox.wait(None)
            self._run_batch(order)
            order = None

    def _run_batch(self, order: StartOrder) -> None:
        self._lease.renew(order.link)
        self._hear_of_driver(order.link)
        self._outbox.begin_batch()
        self._taken = 0
        self._epoch = order.epoch
        self._lay(order)
        if self._sourcing is None:
            self._take_state(order)
            last = self._run_task()
            position: dict[str, Any] = {}
        else:
            try:
                assert order.source is not None
                position = {"source": self._sourcing.run(order.source, self._inbox)}
            except ChannelClosed:
                leave()
            except Exception as problem:  # noqa: BLE001 - users' code may raise anything
                self._head.failures.broken("reading the source", problem)
            last = False
        self._end_batch(position, last=last)

    def _take_state(self, order: StartOrder) -> None:
        """Of the keys that are here behind the epoch of the order; they may have moved with it just now."""
        switches = self._switches
        for runner in self._chain.runners:
            name = runner.task.name
            rescale = switches.rescales.get(name)
            since = rescale.epoch if rescale is not None and rescale.epoch <= order.epoch else 0
            runner.take_state(switches.division(name, order.epoch), since)
        self._waiting.begin(self._head.awaited, everything=self._head.awaits_all)

    def _hear_of_driver(self, link: Link) -> None:
        if link.exchange is not None:  # the bridge has none before its first question was answered
            self._outbox.time.learn(link.exchange)

    def _hear_of_receivers(self, behind: bool) -> None:  # noqa: FBT001 - it is all that there is to hear
        self._outbox.joins = behind

    def _lay(self, order: StartOrder) -> None:
        """Take up the addresses of the batch, by the newest order that is known."""
        self._adopt(order.switches)
        with self._adopting:
            self._passed = order.epoch
            for runner in self._chain.runners:
                runner.context.batch = order.batch
                runner.lay(self._switches, self._passed)

    def _adopt(self, switches: Switches) -> None:
        """Follow an order, unless a newer one came before it."""
        with self._adopting:
            if switches.version < self._switches.version:
                return
            self._switches = switches
            for runner in self._chain.runners:
                runner.adopt(switches, self._passed)
            if self._sourcing is not None:
                self._sourcing.sample(switches.sampling)
                self._sourcing.paused = self._head.task.name in switches.paused
            self._line.report_every(switches.measure_every_s)

    def _run_task(self) -> bool:
        for runner in self._chain.runners:
            runner.start_timer()
        if len(self._chain.tasks) > 1:
            self._tell_hosted(self._chain.tasks)  # the bridge of another batch does not know of it
        self._follow_chain(at_mark=True)
        while True:
            waiting = self._inbox.waiting_bytes
            if waiting > _MANY_BYTES and self._pace.is_quick and self._may_gather:
                self._outbox.gather(self._pace.together, crowded=waiting > _CROWDED_BYTES)
            for kind, body in self._inbox.frames():
                if kind == DATA:
                    self._process(body)
                    self._between_items()
                elif kind == MARK:
                    self._mark(read_mark(body))
                elif kind == END:
                    last = bool(body[0])
                    self._await_state()
                    self._work_off_batches()
                    self._finish_calls()
                    self._outbox.release()
                    return last
            self._outbox.release()
            self._work_off_batches()
            if not self._wait():
                self._acknowledge()
                self._between_items(idle=True)

    def _between_items(self, *, idle: bool = False) -> None:
        head = self._head
        for runner in () if self._waiting.is_for_all else self._with_timers:
            ran = runner.run_timer(sampled=self._switches.sampling > 0)
            if ran is not None:
                head.measured.timer_ran(ran.useful_ns)
                if runner is not head:
                    runner.measured.chained_timer_ran(ran.own_ns)
        self._follow_chain()
        if self._waiting:
            self._look_for_state(idle=idle)

    def _wait(self) -> bool:
        """Wait for input, or for the next thing to do without any; False if none came."""
        if self._head.is_taking_in:
            return self._inbox.wait(0)
        calls = self._calls
        unfinished = self._unacknowledged or (calls is not None and calls.are_open)
        idle_s = _ACK_IDLE_S if unfinished else _CHAIN_CHECK_S if self._switches.chains else None
        if self._waiting:
            idle_s = _STATE_CHECK_S
        with_timers = () if self._waiting.is_for_all else self._with_timers
        timers = [due_ns for runner in with_timers if (due_ns := runner.next_timer_ns) is not None]
        if not timers and calls is None:
            return self._inbox.wait_about(idle_s)
        if timers:
            timer_s = max(0.0, (min(timers) - time.monotonic_ns()) * 1e-9)
            idle_s = timer_s if idle_s is None else min(idle_s, timer_s)
        if calls is None:
            return self._inbox.wait(idle_s)
        return calls.wait(idle_s) and self._inbox.wait_about(None)

    def _finish_calls(self) -> None:
        if self._calls is not None:
            self._calls.finish()
            self._head.settle()

    def _follow_chain(self, *, at_mark: bool = False) -> None:
        """Host the tasks that the settings chain to this one, no more and no fewer."""
        switches = self._switches
        if switches is self._followed and not (at_mark and self._follows_at_mark):
            return
        self._followed = switches
        now = self._chain.tasks
        all_ = next((tuple(chain) for chain in switches.chains if chain[0] == now[0]), now[:1])
        wanted = self._chain.within_reach(all_, at_mark=at_mark)
        self._follows_at_mark = wanted != all_
        if wanted == now:
            return
        self._finish_calls()
        if len(wanted) < len(now):  # both are the beginning of the same pipeline
            self._chain.part(len(wanted))
        self._outbox.flush()
        self._tell_hosted(wanted)
        if len(wanted) > len(now):
            self._chain.join(wanted[len(now) :], self._switches, self._passed)
            self._adopt(self._switches)  # one that came meanwhile has not reached the new runners
        self._look_at_runners()

    def _tell_hosted(self, tasks: Sequence[str]) -> None:
        """Let the bridge know who is hosted here, and wait until their own workers have ended."""
        self._joined.clear()
        self._outbox.send(frame(JOIN, msgspec.json.encode(tasks[1:])))
        self._joined.wait()

    def _look_at_runners(self) -> None:
        """Those of a chain have changed."""
        runners = self._chain.runners
        self._with_timers = [runner for runner in runners if runner.has_timers]
        self._settling.follow(runners)
        self._limit_memory()

    def _limit_memory(self) -> None:
        if self._gauge is not None:
            self._gauge.limit_memory([runner.task.memory_bytes for runner in self._chain.runners])

    def _acknowledge(self) -> None:
        self._settling.look()
        self._outbox.acknowledge()
        self._unacknowledged = self._outbox.finished_input - self._outbox.acknowledged

    def _process(self, body: memoryview) -> None:
        sequence, arrived_ns, careful, data = read_data(body)
        started_ns = time.monotonic_ns()
        self._lease.check(started_ns)
        outbox = self._outbox
        useful_before_ns = outbox.task_time.go(started_ns)
        try:
            envelope = decode(data, self._coders)
        except EnvelopeError as problem:
            self._head.failures.broken("reading an envelope", problem)
            return
        outbox.current_input = self._taken = sequence
        intake, calls = self._intake, self._calls
        if calls is not None:
            calls.begin_input(sequence)
        if careful is not None:
            self._process_carefully(sequence, envelope, arrived_ns, careful)
        elif isinstance(intake, BatchIntake):
            if self._waiting:
                envelope = self._sift(envelope, arrived_ns, len(data))
            useful_ns = outbox.task_time.halt(time.monotonic_ns()) - useful_before_ns
            intake.gather(sequence, envelope, arrived_ns, useful_ns)
            if intake.is_full:
                self._work_off_batches()
            return
        else:
            if self._timed is not None:
                self._timed.envelope(sequence)
            if self._waiting:
                envelope = self._sift(envelope, arrived_ns, len(data))
            intake.process(envelope, arrived_ns)
        if calls is None:
            outbox.finish_input(sequence)
        else:
            calls.end_input(sequence)
        useful_ns = outbox.task_time.halt(time.monotonic_ns()) - useful_before_ns
        self._head.measured.envelope_done(envelope, arrived_ns, useful_ns)
        if self._pace.took(useful_ns, len(envelope.items)):
            outbox.let_go()
        self._unacknowledged += 1
        is_large = len(data) >= self._ack_at_once_bytes
        if careful is not None or is_large or self._unacknowledged >= self._ack_every:
            self._acknowledge()

    def _work_off_batches(self) -> None:
        """A task that takes lists takes what is at hand now."""
        if isinstance(self._intake, BatchIntake):
            self._unacknowledged += self._intake.work_off()
            if self._unacknowledged >= self._ack_every:
                self._acknowledge()

    def _process_carefully(
        self, sequence: int, envelope: Envelope, arrived_ns: int, careful: Careful
    ) -> None:
        """Each item is named before it is touched; all before it is shipped then, and does not come again."""
        tags = {tag.item: tag for tag in envelope.tags}
        self._intake.begin(envelope)
        self._finish_calls()
        for index in range(careful.first, len(envelope.items)):
            self._settling.finish()
            self._outbox.flush()
            self._outbox.send(at_frame(sequence, index))
            if index in careful.verdicts:
                self._put_aside(envelope, index, msgspec.json.decode(careful.verdicts[index], type=Verdict))
                continue
            if self._timed is not None:
                self._timed.envelope(sequence, index)
            self._intake.process_one(envelope, index, tags.get(index), arrived_ns)
            self._finish_calls()
            if self._gauge is not None:
                self._gauge.stop_if_full()

    def _put_aside(self, envelope: Envelope, index: int, verdict: Verdict) -> None:
        """By the policy of the task at fault, though it is the item of this one that is put aside."""
        turn_to(self._head, self._outbox, envelope, index)
        self._head.failures.item_killed(
            envelope.items[index], verdict.problem, self._graph.task(verdict.task).on_error
        )

    def _sift(self, envelope: Envelope, arrived_ns: int, size: int) -> Envelope:
        """What need not wait for state. What has to is acknowledged: if this worker dies, all go back."""
        rest = self._waiting.sift(envelope, arrived_ns, size)
        if self._waiting.is_full and not self._told_full:
            self._told_full = True
            self._outbox.send(full_frame(self._passed))
        return envelope._replace(items=[], ids=None, tags=[], metadata=None) if rest is None else rest

    def _look_for_state(self, *, idle: bool) -> None:
        """From time to time: whether the state of keys has come that were another replica's."""
        now_ns = time.monotonic_ns()
        if now_ns - self._looked_ns < _STATE_CHECK_NS and not (idle and self._head.is_taking_in):
            return
        found = self._head.look_for_state()
        self._looked_ns = time.monotonic_ns()
        if found:
            self._process_held()

    def _await_state(self) -> None:
        """What waits came before the mark, or the end, that is to be answered now."""
        self._outbox.release()  # somebody may wait for it, and we for him
        while self._waiting:
            self._lease.check(time.monotonic_ns())
            if self._head.look_for_state():
                self._process_held()
            elif not self._head.is_taking_in:
                time.sleep(_STATE_CHECK_S)

    def _process_held(self) -> None:
        self._told_full = False
        intake, outbox = self._intake, self._outbox
        for envelope, arrived_ns in self._waiting.end():
            if isinstance(intake, BatchIntake):
                intake.gather(self._taken, envelope, arrived_ns)
                continue
            useful_before_ns = outbox.task_time.go(time.monotonic_ns())
            intake.process(envelope, arrived_ns)
            useful_ns = outbox.task_time.halt(time.monotonic_ns()) - useful_before_ns
            self._head.measured.envelope_done(envelope, arrived_ns, useful_ns)

    def _follow_mark(self, mark: Mark) -> None:
        """It is answered: what is sent from now on is behind it, and keys may have other owners there."""
        if not mark.switches:
            return
        switches = msgspec.json.decode(mark.switches, type=Switches)
        with self._adopting:
            self._passed = mark.epoch
        self._adopt(max(switches, self._switches, key=attrgetter("version")))
        if self._sourcing is None and self._head.task.name in switches.rescales:
            self._head.move(switches.division(self._head.task.name, mark.epoch), mark.epoch)
            self._waiting.begin(self._head.awaited, everything=self._head.awaits_all)

    def _mark(self, mark: Mark) -> None:
        """An epoch ends here: write down all that came before, say so, and go on."""
        self._await_state()
        self._work_off_batches()
        self._finish_calls()
        self._outbox.begin_item(None, None)
        self._lease.check(time.monotonic_ns())
        self._epoch = mark.epoch
        said = self._write_down(mark.epoch)
        self._outbox.flush()
        self._outbox.finish_input(mark.sequence)
        self._settling.flushed()
        self._unacknowledged = 0
        self._taken = mark.sequence
        self._outbox.answer_mark(mark.sequence, mark.epoch, msgspec.json.encode(said))
        for runner in self._chain.runners:
            runner.marked()
        self._follow_mark(mark)
        self._follow_chain(at_mark=True)

    def _write_down(self, epoch: int) -> Marked:
        """Before a commit: what tasks have taken is safe or prepared, and what changed in state in files."""
        runners = self._chain.runners
        for runner in runners:
            runner.flush()
        handles = [handle for runner in runners for handle in runner.prepare(epoch)]
        return self._written(epoch, handles)

    def _written(self, epoch: int, handles: list[Handle]) -> Marked:
        """What to say of an epoch. State is of the first task of a chain alone: it gets its input by key."""
        head, *others = [runner.commit_state(epoch) for runner in self._chain.runners]
        assert not any(said.files for said in others), "who is hosted has no state"
        return msgspec.structs.replace(head, handles=tuple(handles))

    def _end_batch(self, position: dict[str, Any], *, last: bool) -> None:
        self._outbox.begin_item(None, None)
        self._lease.check(time.monotonic_ns())
        if self._sourcing is None:
            handles = list[Handle]()
            for runner in self._chain.runners:
                runner.flush()
                if self._marks:
                    handles += runner.prepare(self._epoch + 1)
                if last:
                    runner.close()
            if last and self._loop is not None:
                self._loop.close()
            self._settling.flushed()
            said = self._written(
                self._epoch + 1 if self._marks else epoch_of(self._head.context.batch), handles
            )
            if self._marks:
                position["marked"] = said
        else:
            self._head.failures.flush()
        self._outbox.flush()
        self._outbox.acknowledge()
        self._unacknowledged = 0
        self._outbox.send(frame(ENDED, self._report(**position)))

    def _report(self, **more: Any) -> bytes:
        runners = [*self._chain.runners, *self._chain.take_parted()]
        return process_report([runner.measured for runner in runners], **more)

    def _fail(self, report: dict[str, Any]) -> NoReturn:
        """Tell the bridge and wait for it to end this process: nothing after a failure may take effect."""
        self._outbox.send(frame(FAILED, msgspec.json.encode(report)))
        while True:
            time.sleep(60)


def _sender(data: socket.socket) -> Callable[[bytes], None]:
    """Sends frames. Without a bridge at the other end nothing it does can take effect: the process ends."""

    def send(frame: bytes) -> None:
        try:
            data.sendall(frame)
        except (BrokenPipeError, ConnectionResetError):
            leave()

    return send


def _wake_on_time() -> None:
    """Linux lets a thread oversleep by 50 us to save wake-ups; threads started later inherit this."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, _TIMER_SLACK_NS, 0, 0, 0)


def main(plan: Plan, data: socket.socket, control: socket.socket, *, gauge: Gauge | None = None) -> NoReturn:
    """In a forked child: the first START says which replica of which task it is."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    _wake_on_time()
    inbox = Inbox(data)
    try:
        while True:
            for kind, body in inbox.frames():
                if kind == START:
                    order = msgspec.json.decode(body, type=StartOrder)
                    Worker(plan, order, data, control, inbox, gauge).serve(order)
            inbox.wait(None)
    except ChannelClosed:
        leave()
