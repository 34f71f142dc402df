"""Calls of an async body: begun in the order of the items, as many at once as its `concurrency` says.

A call is open from its start until what it answered is sent: in the order of the items, unless `ordered` is
false. So a replica never holds more than `concurrency` items, and an input is acknowledged only when all of
its calls are over. Everything here runs in the task's thread (call_loop.py).
"""

import asyncio
import time
import types
from collections import deque
from collections.abc import Coroutine, Generator
from typing import Any

from penstock.durations import format_ms
from penstock.flow.graph import Task
from penstock.wire.envelope import Envelope, Tag
from penstock.worker.asking import Asked
from penstock.worker.call_loop import CallClock, CallLoop
from penstock.worker.context import AwaitedContext
from penstock.worker.failures import Failures
from penstock.worker.measurements import Measurements, SampledCall
from penstock.worker.open_inputs import OpenInputs
from penstock.worker.outbox import NO_WAY, Outbox
from penstock.worker.retries import retrying_async
from penstock.worker.slot_time import SlotTime

Way = tuple[Envelope, Tag, int]
"""How a tagged item came: its envelope, its tag, and when it arrived."""


class _Call:
    """An item, where it comes from, and what came of it."""

    __slots__ = (
        "answer",
        "input",
        "is_done",
        "item",
        "item_id",
        "metadata",
        "origin_ns",
        "place",
        "problem",
        "sample",
        "sequence",
        "task",
    )

    def __init__(
        self, item: Any, outbox: Outbox, context: AwaitedContext, sample: SampledCall | None
    ) -> None:
        self.item = item
        self.item_id = context.item_id
        self.input = context.input
        self.metadata = outbox.metadata
        self.origin_ns = outbox.origin_ns
        self.sequence = outbox.current_input
        self.sample = sample
        self.place: tuple[int, int] | None = None
        self.task: asyncio.Task[None] | None = None
        self.answer: Any = None
        self.problem: BaseException | None = None
        self.is_done = False


class Calls:
    """The calls of one replica."""

    def __init__(
        self,
        task: Task,
        asked: Asked,
        loop: CallLoop,
        outbox: Outbox,
        context: AwaitedContext,
        failures: Failures,
        measured: Measurements,
    ) -> None:
        assert task.concurrency is not None
        self.slots = SlotTime(task.concurrency)
        self._concurrency = task.concurrency
        self._retries = task.retries
        self._timeout_ms = task.timeout_ms
        self._ask, self._give = asked
        self._loop = loop
        self._clock = loop.clock
        self._outbox = outbox
        self._context = context
        self._failures = failures
        self._measured = measured
        self._inputs = OpenInputs(outbox)
        self._finished: list[_Call] = []
        self._in_order: deque[_Call] | None = deque() if task.ordered else None
        self._open: set[_Call] = set()

    @property
    def are_open(self) -> bool:
        """Whether there is any."""
        return bool(self._open)

    def begin_input(self, sequence: int) -> None:
        """The items that come now are those of this input."""
        self._inputs.add(sequence)

    def end_input(self, sequence: int) -> None:
        """All of them were taken."""
        self._inputs.remove(sequence)

    def start(self, item: Any, way: Way | None = None) -> None:
        """Begin a call for an item, as soon as there is room for it."""
        while len(self._open) >= self._concurrency:
            self._loop.turn(None)
            self._send_on()
        self._context.describe(self._outbox.metadata)
        sample = None if way is None else self._measured.call_begun(*way)
        call = _Call(item, self._outbox, self._context, sample)
        if self._clock is not None:
            call.place = self._clock.taken()
        self._inputs.add(call.sequence)
        self._open.add(call)
        self.slots.opened(time.monotonic_ns())
        if self._in_order is not None:
            self._in_order.append(call)
        call.task = self._loop.start(self._run(call))

    def wait(self, wait_s: float | None) -> bool:
        """Let calls go on until there is input, or so long; whether there is."""
        until_s = None if wait_s is None else time.monotonic() + wait_s
        left_s = wait_s
        while True:
            has_input = self._loop.turn_for_input(left_s)
            self._send_on()
            if has_input:
                return True
            if until_s is not None:
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return False

    def finish(self) -> None:
        """Wait until all calls are over."""
        while self._open:
            self._loop.turn(None)
            self._send_on()

    async def _run(self, call: _Call) -> None:
        try:
            if self._retries is None:
                call.answer = await self._attempt(call)
            else:
                call.answer = await retrying_async(lambda: self._attempt(call), self._retries)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as problem:  # noqa: BLE001 - also a cancellation: nobody but the body asks for it
            call.problem = problem
        self._finished.append(call)
        self._loop.tell()

    async def _attempt(self, call: _Call) -> Any:
        answer = self._ask(call.item)
        if call.place is not None:
            assert self._clock is not None
            answer = _clocked(answer, self._clock, call.place)
        if self._timeout_ms is None:
            return await answer
        try:
            async with asyncio.timeout(self._timeout_ms / 1000.0) as limit:
                return await answer
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(f"it took longer than its timeout={format_ms(self._timeout_ms)}") from None

    def _send_on(self) -> None:
        """Send what was answered, as far as the order allows; the item that is taken in stays the same."""
        if not self._finished:
            return
        finished, self._finished = self._finished, []
        outbox, context = self._outbox, self._context
        before = (outbox.parent_id, outbox.origin_ns)
        came, behind_ns, sequence = outbox.came, outbox.behind_ns, outbox.current_input
        named, metadata = (context.input, context.item_id), outbox.metadata
        for call in finished:
            call.is_done = True
        if self._in_order is None:
            for call in finished:
                self._close(call)
        else:
            while self._in_order and self._in_order[0].is_done:
                self._close(self._in_order.popleft())
        outbox.ascend(before)
        outbox.came, outbox.behind_ns = came, behind_ns
        outbox.go_back_to(sequence)
        context.input, context.item_id = named
        outbox.metadata = metadata

    def _close(self, call: _Call) -> None:
        outbox, context, sample = self._outbox, self._context, call.sample
        outbox.go_back_to(call.sequence)
        outbox.begin_item(call.item_id, call.origin_ns, call.metadata)
        outbox.came = NO_WAY if sample is None else sample.came
        outbox.behind_ns = 0
        context.input, context.item_id = call.input, call.item_id
        context.describe(call.metadata)
        if call.place is not None:
            assert self._clock is not None
            self._clock.enter(call.place)
        problem = call.problem
        if problem is None:
            try:
                self._give(call.item, call.answer)
            except Exception as raised:  # noqa: BLE001 - users' code (keys, chained tasks) may raise anything
                problem = raised
        if problem is not None:
            self._failures.item_failed(call.item, problem)
        if self._clock is not None:
            self._clock.leave()
        if sample is not None:
            self._measured.call_done(sample)
        self._open.remove(call)
        self._inputs.remove(call.sequence)
        self.slots.closed(time.monotonic_ns())


@types.coroutine
def _clocked(
    answer: Coroutine[Any, Any, Any], clock: CallClock, place: tuple[int, int]
) -> Generator[Any, Any, Any]:
    """Await an answer, and show when its code has the thread, for which all others have to wait."""
    send, argument = answer.send, None
    while True:
        clock.enter(place)
        try:
            awaited = send(argument)
        except StopIteration as answered:
            return answered.value
        finally:
            clock.leave()
        try:
            send, argument = answer.send, (yield awaited)
        except BaseException as thrown:  # noqa: BLE001 - whatever it is, it is for the body
            send, argument = answer.throw, thrown
