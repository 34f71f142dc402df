"""A replica of a task: one process, one task, batch after batch, until the bridge goes away."""

import os
import socket
import sys
import time
from typing import Any, NoReturn

import msgspec

from penstock.flow.graph import Graph, Task
from penstock.spark.clock import Clock
from penstock.spark.context import Context, Out
from penstock.spark.envelope import UNKNOWN_ORIGIN, Envelope, Tag, decode
from penstock.spark.failures import Failures
from penstock.spark.measure import Measurements
from penstock.spark.outbox import Outbox, OutStream
from penstock.spark.plan import Plan
from penstock.spark.routes import Settings
from penstock.spark.sourcing import SourceOrder, Sourcing
from penstock.spark.steps import Body
from penstock.spark.wire import (
    DATA,
    END,
    ENDED,
    FAILED,
    START,
    STOP,
    ChannelClosed,
    Inbox,
    at_frame,
    frame,
    read_data,
)

_ACK_IDLE_S = 0.05
_ACK_EVERY = 64
_SWITCH_INTERVAL_S = 0.0005


class StartOrder(msgspec.Struct, frozen=True):
    """What the bridge tells a worker at the beginning of a batch."""

    task: str
    replica: int
    settings: Settings
    source: SourceOrder | None = None


class Worker:
    """The task's thread: takes frames in, runs the task on their items, ends batches."""

    def __init__(
        self, plan: Plan, order: StartOrder, data: socket.socket, control: socket.socket, inbox: Inbox
    ) -> None:
        graph = plan.graph
        task = graph.task(order.task)
        self._task = task
        self._inbox = inbox
        self._context = Context(graph.name, task.name, order.replica)
        self._outbox = Outbox(data.sendall, order.replica, with_ids=graph.ids)
        numbers = {stream.name: number for number, stream in enumerate(graph.streams)}
        self._stream_names = [stream.name for stream in graph.streams]
        self._outbox.streams = [
            OutStream(self._outbox, stream, numbers[stream.name]) for stream in graph.outputs_of(task.name)
        ]
        self._failures = Failures(task.name, order.replica, task.on_error, plan.dead_letters, self._fail)
        self._outbox.on_unshippable = lambda _, item, problem: self._failures.item_failed(item, problem)
        self._measured = Measurements(
            task.name, order.replica, task.latency, self._outbox, self._failures, self._stream_names
        )
        self._settings = order.settings
        self._sourcing: Sourcing | None = None
        if task.kind == "source":
            origin = _origin(graph, task, order.replica)
            self._sourcing = Sourcing(task, order.replica, origin, self._outbox, self._measured, self._inbox)
        else:
            gathers = task.latency == "read_write"
            out = Out(task, self._outbox.streams, self._measured.wrote if gathers else None)
            self._body = Body(task, self._context, out)
        self._every_ns = None if task.every_ms is None else round(task.every_ms * 1e6)
        self._next_timer_ns: int | None = None
        self._unacknowledged = 0
        self._clock = Clock(control, self._outbox, self._settings_changed, self._measured.report)

    def serve(self, first: StartOrder) -> NoReturn:
        """Batches, for ever; the clock's thread or a closed channel ends the process."""
        if self._sourcing is None:
            try:
                self._body.open()
            except Exception as problem:  # noqa: BLE001 - users' code may raise anything
                self._failures.broken("open()", problem)
        self._clock.start()
        order: StartOrder | None = first
        while True:
            while order is None:
                for kind, body in self._inbox.frames():
                    if kind == STOP:
                        os._exit(0)
                    if kind == START:
                        order = msgspec.json.decode(body, type=StartOrder)
                        break
                else:
                    self._inbox.wait(None)
            self._run_batch(order)
            order = None

    def _run_batch(self, order: StartOrder) -> None:
        self._context.batch += 1
        self._lay(order.settings)
        if self._sourcing is None:
            last = self._run_task()
            position: dict[str, Any] = {}
        else:
            try:
                assert order.source is not None
                position = {"source": self._sourcing.run(order.source)}
            except ChannelClosed:
                os._exit(0)
            except Exception as problem:  # noqa: BLE001 - users' code may raise anything
                self._failures.broken("reading the source", problem)
            last = False
        self._end_batch(position, last=last)

    def _lay(self, settings: Settings) -> None:
        for stream in self._outbox.streams:
            stream.lay(settings.routes[stream.spec.name], 0)
        # The driver may have spoken to the clock's thread since this order was written.
        newer = self._settings if self._settings.routes == settings.routes else settings
        self._adopt(newer)

    def _settings_changed(self, json: bytes) -> None:
        self._adopt(msgspec.json.decode(json, type=Settings))

    def _adopt(self, settings: Settings) -> None:
        self._settings = settings
        for stream in self._outbox.streams:
            stream.activate(settings.active[stream.spec.receiver])
            stream.lifetime_ns = round(settings.lifetime_ms[stream.spec.name] * 1e6)
        if self._sourcing is not None:
            self._sourcing.sample(settings.sampling)

    def _run_task(self) -> bool:
        if self._every_ns is not None:
            self._next_timer_ns = time.monotonic_ns() + self._every_ns
        while True:
            for kind, body in self._inbox.frames():
                if kind == DATA:
                    self._process(body)
                    self._run_timer()
                elif kind == END:
                    return bool(body[0])
            if not self._inbox.wait(self._patience_s()):
                self._acknowledge()
            self._run_timer()

    def _patience_s(self) -> float | None:
        patience = _ACK_IDLE_S if self._unacknowledged else None
        if self._next_timer_ns is not None:
            until_timer = max(0.0, (self._next_timer_ns - time.monotonic_ns()) * 1e-9)
            patience = until_timer if patience is None else min(patience, until_timer)
        return patience

    def _run_timer(self) -> None:
        if self._next_timer_ns is None or time.monotonic_ns() < self._next_timer_ns:
            return
        assert self._every_ns is not None
        late_ns = time.monotonic_ns() - self._next_timer_ns
        self._next_timer_ns += self._every_ns * (1 + late_ns // self._every_ns)
        # What a timer sends is little and stems from no single item: all of it is timed from here on.
        self._outbox.begin_item(None, UNKNOWN_ORIGIN if self._settings.sampling else None)
        try:
            self._body.timer()
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self._failures.broken("timer()", problem)

    def _acknowledge(self) -> None:
        self._outbox.acknowledge()
        self._unacknowledged = self._outbox.finished_input - self._outbox.acknowledged

    def _process(self, body: memoryview) -> None:
        sequence, arrived_ns, careful, poisoned, data = read_data(body)
        started_ns = time.monotonic_ns()
        envelope = decode(data)
        outbox = self._outbox
        outbox.current_input = sequence
        waited_ns = outbox.waited_ns
        self._context.input = self._stream_names[envelope.stream]
        if careful:
            self._process_carefully(sequence, envelope, arrived_ns, poisoned)
        elif envelope.ids is None and not envelope.tags:
            outbox.begin_item(None, None)
            self._process_plain(envelope.items)
        else:
            self._process_marked(envelope, arrived_ns)
        outbox.finished_input = sequence
        useful_ns = time.monotonic_ns() - started_ns - (outbox.waited_ns - waited_ns)
        self._measured.envelope_done(envelope, arrived_ns, useful_ns)
        self._unacknowledged += 1
        if careful or self._unacknowledged >= _ACK_EVERY:
            self._acknowledge()

    def _process_plain(self, items: list[Any]) -> None:
        step = self._body.step
        start = 0
        while start < len(items):
            index = start
            try:
                for index in range(start, len(items)):
                    step(items[index])
                return
            except Exception as problem:  # noqa: BLE001 - users' code may raise anything
                self._failures.item_failed(items[index], problem)
                start = index + 1

    def _process_marked(self, envelope: Envelope, arrived_ns: int) -> None:
        tags = {tag.item: tag for tag in envelope.tags}
        for index in range(len(envelope.items)):
            self._process_one(envelope, index, tags.get(index), arrived_ns)

    def _process_one(self, envelope: Envelope, index: int, tag: Tag | None, arrived_ns: int) -> None:
        item_id = None if envelope.ids is None else envelope.ids[index]
        item = envelope.items[index]
        self._context.item_id = item_id
        self._outbox.begin_item(item_id, None if tag is None else tag.origin_ns)
        if tag is None:
            self._step(item)
        else:
            self._measured.time_item(envelope, tag, arrived_ns, lambda: self._step(item))

    def _step(self, item: Any) -> None:
        try:
            self._body.step(item)
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self._failures.item_failed(item, problem)

    def _process_carefully(
        self, sequence: int, envelope: Envelope, arrived_ns: int, poisoned: list[int]
    ) -> None:
        tags = {tag.item: tag for tag in envelope.tags}
        for index, item in enumerate(envelope.items):
            if index in poisoned:
                self._failures.item_killed(item)
                continue
            self._outbox.send(at_frame(sequence, index))
            self._process_one(envelope, index, tags.get(index), arrived_ns)

    def _end_batch(self, position: dict[str, Any], *, last: bool) -> None:
        self._outbox.begin_item(None, None)
        if self._sourcing is None:
            try:
                if last:
                    self._body.close()
                self._body.flush()
            except Exception as problem:  # noqa: BLE001 - users' code may raise anything
                self._failures.broken("close()" if last else "flush()", problem)
        self._outbox.flush()
        self._outbox.acknowledge()
        self._unacknowledged = 0
        self._outbox.send(frame(ENDED, self._measured.report(**position)))

    def _fail(self, report: dict[str, Any]) -> NoReturn:
        """Tell the bridge and wait for it to end this process: nothing after a failure may take effect."""
        self._outbox.send(frame(FAILED, msgspec.json.encode(report)))
        while True:
            time.sleep(60)


def _origin(graph: Graph, source: Task, partition: int) -> int:
    """The number of a source's partition among those of all sources, for ids that are unique in the flow."""
    sources = [task for task in graph.tasks if task.kind == "source"]
    return partition + sum(task.parallelism.pool for task in sources[: sources.index(source)])


def main(plan: Plan, data: socket.socket, control: socket.socket) -> NoReturn:
    """In a forked child: the first START says which replica of which task it is."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    inbox = Inbox(data)
    try:
        while True:
            for kind, body in inbox.frames():
                if kind == START:
                    order = msgspec.json.decode(body, type=StartOrder)
                    Worker(plan, order, data, control, inbox).serve(order)
            inbox.wait(None)
    except ChannelClosed:
        os._exit(0)
