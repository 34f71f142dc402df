"""A replica of a task: one process, one task, batch after batch, until the bridge goes away."""

import ctypes
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from penstock.wire.envelope import Envelope, Tag, decode
from penstock.wire.frames import (
    DATA,
    END,
    ENDED,
    FAILED,
    JOIN,
    START,
    Careful,
    ChannelClosed,
    Inbox,
    at_frame,
    frame,
    read_data,
)
from penstock.wire.orders import Link, Plan, StartOrder, Switches, Verdict
from penstock.worker.chain import Chain
from penstock.worker.control_line import ControlLine
from penstock.worker.gauge import Gauge, is_timed
from penstock.worker.lease import Lease, leave
from penstock.worker.measurements import process_report
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.runner import Runner
from penstock.worker.shipper import Shipper
from penstock.worker.sourcing import Sourcing

_ACK_IDLE_S = 0.05
_ACK_EVERY = 64
_CHAIN_CHECK_S = 0.1
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
        self._stream_names = [stream.name for stream in graph.streams]
        if gauge is not None:
            gauge.begin(order.task)
        self._timed = gauge if gauge is not None and is_timed(graph, order.task) else None
        send = _sender(data)
        self._outbox = Outbox(
            send if self._timed is None else self._timed.sending(send), order.replica, with_ids=graph.ids
        )
        self._outbox.on_unshippable = self._unshippable
        self._switches = order.switches
        self._head = Runner(plan, order.task, order.replica, self._outbox, self._fail, self._timed)
        self._outbox.streams = list(self._head.streams)
        self._chain = Chain(
            self._head,
            self._outbox,
            lambda name: Runner(plan, name, order.replica, self._outbox, self._fail, self._timed),
        )
        self._limit_memory()
        self._joined = threading.Event()
        self._sourcing: Sourcing | None = None
        if self._head.task.kind == "source":
            self._sourcing = Sourcing(self._head.task, self._outbox, self._head.measured, self._inbox)
        self._unacknowledged = 0
        self._shipper = Shipper(self._outbox)
        self._lease = Lease(order.link)
        self._line = ControlLine(
            control,
            on_switches=self._adopt,
            on_joined=self._joined.set,
            on_link=self._hear_of_driver,
            lease=self._lease,
            report=self._report,
            report_every_s=order.switches.measure_every_s,
        )

    def serve(self, first: StartOrder) -> NoReturn:
        """Batches, for ever; the control line or a closed channel ends the process."""
        self._head.context.batch = first.batch
        if self._sourcing is None:
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
        self._lay(order)
        if self._sourcing is None:
            last = self._run_task()
            position: dict[str, Any] = {}
        else:
            try:
                assert order.source is not None
                position = {"source": self._sourcing.run(order.source)}
            except ChannelClosed:
                leave()
            except Exception as problem:  # noqa: BLE001 - users' code may raise anything
                self._head.failures.broken("reading the source", problem)
            last = False
        self._end_batch(position, last=last)

    def _hear_of_driver(self, link: Link) -> None:
        if link.exchange is not None:  # the bridge has none before its first question was answered
            self._outbox.time.learn(link.exchange)

    def _lay(self, order: StartOrder) -> None:
        """Take up the addresses of the batch, by the newest order that is known."""
        self._adopt(order.switches)
        with self._adopting:
            for runner in self._chain.runners:
                runner.context.batch = order.batch
                runner.lay(self._switches)

    def _adopt(self, switches: Switches) -> None:
        """Follow an order, unless a newer one came before it."""
        with self._adopting:
            if switches.version < self._switches.version:
                return
            self._switches = switches
            for runner in self._chain.runners:
                runner.adopt(switches)
            if self._sourcing is not None:
                self._sourcing.sample(switches.sampling)
            self._line.report_every(switches.measure_every_s)

    def _run_task(self) -> bool:
        for runner in self._chain.runners:
            runner.start_timer()
        self._follow_chain()
        while True:
            for kind, body in self._inbox.frames():
                if kind == DATA:
                    self._process(body)
                    self._between_items()
                elif kind == END:
                    return bool(body[0])
            if not self._wait():
                self._acknowledge()
                self._between_items()

    def _between_items(self) -> None:
        for runner in self._chain.runners:
            runner.run_timer(sampled=self._switches.sampling > 0)
        self._follow_chain()

    def _wait(self) -> bool:
        """Wait for input, or for the next thing to do without any; False if none came."""
        idle_s = _ACK_IDLE_S if self._unacknowledged else _CHAIN_CHECK_S if self._switches.chains else None
        timers = [runner.next_timer_ns for runner in self._chain.runners if runner.next_timer_ns is not None]
        if not timers:
            return self._inbox.wait_about(idle_s)
        timer_s = max(0.0, (min(timers) - time.monotonic_ns()) * 1e-9)
        return self._inbox.wait(timer_s if idle_s is None else min(idle_s, timer_s))

    def _follow_chain(self) -> None:
        """Host the tasks that the settings chain to this one, no more and no fewer."""
        mine = self._chain.tasks[0]
        wanted = next((tuple(chain) for chain in self._switches.chains if chain[0] == mine), (mine,))
        if wanted == self._chain.tasks:
            return
        if len(self._chain.tasks) > 1:
            self._chain.part()
        if len(wanted) > 1:
            self._outbox.flush()
            self._joined.clear()
            self._outbox.send(frame(JOIN, msgspec.json.encode(wanted[1:])))
            self._joined.wait()
            self._chain.join(wanted[1:], self._switches)
            self._adopt(self._switches)  # one that came meanwhile has not reached the new runners
        self._limit_memory()

    def _limit_memory(self) -> None:
        if self._gauge is not None:
            self._gauge.limit_memory([runner.task.memory_bytes for runner in self._chain.runners])

    def _acknowledge(self) -> None:
        self._outbox.acknowledge()
        self._unacknowledged = self._outbox.finished_input - self._outbox.acknowledged

    def _process(self, body: memoryview) -> None:
        sequence, arrived_ns, careful, data = read_data(body)
        started_ns = time.monotonic_ns()
        self._lease.check(started_ns)
        envelope = decode(data)
        outbox = self._outbox
        outbox.current_input = sequence
        if self._timed is not None:
            self._timed.envelope(sequence)
        waited_ns = outbox.waited_ns
        self._head.context.input = self._stream_names[envelope.stream]
        if careful is not None:
            self._process_carefully(sequence, envelope, arrived_ns, careful)
        elif envelope.ids is None:
            self._process_tagged(envelope, arrived_ns)
        else:
            self._process_marked(envelope, arrived_ns)
        outbox.finished_input = sequence
        useful_ns = outbox.useful_ns(started_ns, waited_ns)
        self._head.measured.envelope_done(envelope, arrived_ns, useful_ns)
        self._unacknowledged += 1
        if careful is not None or self._unacknowledged >= _ACK_EVERY:
            self._acknowledge()

    def _process_marked(self, envelope: Envelope, arrived_ns: int) -> None:
        tags = {tag.item: tag for tag in envelope.tags}
        for index in range(len(envelope.items)):
            self._process_one(envelope, index, tags.get(index), arrived_ns)

    def _process_tagged(self, envelope: Envelope, arrived_ns: int) -> None:
        """The items between two tagged ones need no care."""
        items, start = envelope.items, 0
        head, outbox = self._head, self._outbox
        outbox.begin_item(None, None)
        for tag in envelope.tags:
            if tag.item > start:
                head.steps(items[start : tag.item])
            outbox.origin_ns = tag.origin_ns
            head.measured.time_item(envelope, tag, arrived_ns, head.step, items[tag.item])
            outbox.origin_ns = None
            start = tag.item + 1
        if start < len(items):
            head.steps(items[start:] if start else items)

    def _process_one(self, envelope: Envelope, index: int, tag: Tag | None, arrived_ns: int) -> None:
        item_id = None if envelope.ids is None else envelope.ids[index]
        item = envelope.items[index]
        head = self._head
        head.context.item_id = item_id
        self._outbox.begin_item(item_id, None if tag is None else tag.origin_ns)
        if tag is None:
            head.step(item)
        else:
            head.measured.time_item(envelope, tag, arrived_ns, head.step, item)

    def _process_carefully(
        self, sequence: int, envelope: Envelope, arrived_ns: int, careful: Careful
    ) -> None:
        """Each item is named before it is touched; all before it is shipped then, and does not come again."""
        tags = {tag.item: tag for tag in envelope.tags}
        for index in range(careful.first, len(envelope.items)):
            self._outbox.flush()
            self._outbox.send(at_frame(sequence, index))
            if index in careful.verdicts:
                self._put_aside(envelope, index, msgspec.json.decode(careful.verdicts[index], type=Verdict))
                continue
            if self._timed is not None:
                self._timed.envelope(sequence, index)
            self._process_one(envelope, index, tags.get(index), arrived_ns)
            if self._gauge is not None:
                self._gauge.stop_if_full()

    def _put_aside(self, envelope: Envelope, index: int, verdict: Verdict) -> None:
        """By the policy of the task at fault, though it is the item of this one that is put aside."""
        head = self._head
        head.context.item_id = None if envelope.ids is None else envelope.ids[index]
        head.failures.item_killed(
            envelope.items[index], verdict.problem, self._graph.task(verdict.task).on_error
        )

    def _end_batch(self, position: dict[str, Any], *, last: bool) -> None:
        self._outbox.begin_item(None, None)
        self._lease.check(time.monotonic_ns())
        if self._sourcing is None:
            for runner in self._chain.runners:
                runner.flush()
                if last:
                    runner.close()
        self._outbox.flush()
        self._outbox.acknowledge()
        self._unacknowledged = 0
        self._outbox.send(frame(ENDED, self._report(**position)))

    def _report(self, **more: Any) -> bytes:
        runners = [*self._chain.runners, *self._chain.take_parted()]
        return process_report([runner.measured for runner in runners], **more)

    def _unshippable(self, stream: OutStream, item: Any, problem: Exception) -> None:
        for runner in self._chain.runners:
            if stream in runner.streams:
                runner.failures.result_failed(item, problem)

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
