"""One task inside a worker: the user's code, its error policy, its output streams and its measurements."""

import time
from collections.abc import Callable
from typing import Any

from penstock.wire.orders import Plan, Switches
from penstock.worker.context import Context, Out
from penstock.worker.failures import Failures
from penstock.worker.flow_time import UNKNOWN_NS
from penstock.worker.gauge import Gauge
from penstock.worker.measurements import Measurements
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.steps import Body

Fail = Callable[[dict[str, Any]], None]


class Runner:
    """A replica of a task. A worker has one, or several when tasks are chained."""

    def __init__(
        self, plan: Plan, name: str, replica: int, outbox: Outbox, fail: Fail, timed: Gauge | None = None
    ) -> None:
        graph = plan.graph
        self.task = graph.task(name)
        self.streams = [
            OutStream(outbox, stream, number)
            for number, stream in enumerate(graph.streams)
            if stream.sender == name
        ]
        self.context = Context(graph.name, name, replica)
        self.failures = Failures(self.task, self.context, plan.dead_letters, fail)
        names = [stream.name for stream in graph.streams]
        self.measured = Measurements(
            name, replica, self.task.latency, self.streams, self.failures, names, outbox
        )
        self._outbox = outbox
        self._every_ns = None if self.task.every_ms is None else round(self.task.every_ms * 1e6)
        self.next_timer_ns: int | None = None
        if self.task.kind != "source":
            gathers = self.task.latency == "read_write"
            out = Out(self.task, self.streams, self.measured.wrote if gathers else None)
            self._body = Body(self.task, self.context, out)
            if timed is not None:
                self._body.step = timed.timed(self._body.step, name)

    def lay(self, switches: Switches) -> None:
        """Take up the addresses of a batch."""
        for stream in self.streams:
            stream.lay(switches.routes[stream.spec.name], 0)
        self.adopt(switches)

    def adopt(self, switches: Switches) -> None:
        """Follow the switches: active receivers and batch lifetimes."""
        for stream in self.streams:
            stream.activate(switches.active[stream.spec.receiver])
            stream.lifetime_ns = round(switches.lifetime_ms[stream.spec.name] * 1e6)

    def open(self) -> None:
        """Call `open(context)`."""
        self._guard("open()", self._body.open)

    def flush(self) -> None:
        """Call `flush()`: a batch is about to be committed."""
        self._guard("flush()", self._body.flush)
        self._guard("writing dead letters", self.failures.flush)

    def close(self) -> None:
        """Call `close()`; what it sends still arrives."""
        self._outbox.begin_item(None, None)
        self._guard("close()", self._body.close)

    def start_timer(self) -> None:
        """Timers run inside a batch only: between two there is nowhere to send to."""
        if self._every_ns is not None:
            self.next_timer_ns = time.monotonic_ns() + self._every_ns

    def run_timer(self, *, sampled: bool) -> None:
        """Call `timer(out)` if it is time; times that were missed are not made up for."""
        if self.next_timer_ns is None or (late_ns := time.monotonic_ns() - self.next_timer_ns) < 0:
            return
        assert self._every_ns is not None
        self.next_timer_ns += self._every_ns * (1 + late_ns // self._every_ns)
        # What a timer sends is little and stems from no single item: all of it is timed from here on.
        self._outbox.begin_item(None, UNKNOWN_NS if sampled else None)
        self._guard("timer()", self._body.timer)

    def step(self, item: Any) -> None:
        """Process one item, by the error policy if need be."""
        try:
            self._body.step(item)
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self.failures.item_failed(item, problem)

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

    def _guard(self, hook: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self.failures.broken(hook, problem)
