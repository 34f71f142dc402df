"""How each form of task handles one item, or a batch of them: a function made once per worker."""

import inspect
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast

from penstock.flow.delivery import is_transactional
from penstock.flow.graph import Task
from penstock.io.protocol import LateSink, TransactionalSink
from penstock.worker.asking import Asked, asked
from penstock.worker.context import Context, Out
from penstock.worker.retries import retrying
from penstock.worker.state_store import StateStore

Step = Callable[[Any], object]


class Body:
    """The user's code of a task in this worker, with the hooks it has."""

    def __init__(
        self,
        task: Task,
        context: Context,
        out: Out,
        *,
        pause: Callable[[float], None] = time.sleep,
        settle: Callable[[object], None] = lambda _: None,
        store: StateStore | None = None,
    ) -> None:
        """`pause` waits for another try; `settle` for what a hook returned, where the body is async."""
        self._task = task
        body = task.body
        if task.form in ("object", "sink_object", "sink_batches") and isinstance(body, type):
            body = body()
        self._body: Any = body
        self._context = context
        self._out = out
        self._settle = settle
        self._store = store
        if store is not None:
            body = store.bind(body)
        self.asked: Asked = asked(task, body, out)
        self.step: Step = (
            _step(task, body, out) if task.retries is None else retrying(self.asked, task.retries, pause)
        )

    def open(self) -> None:
        """Call `open(context)`."""
        if hasattr(self._body, "open"):
            with self._between_items():
                self._settle(self._body.open(self._context))

    @property
    def late_sink(self) -> LateSink | None:
        """The body, if it delivers later than it takes."""
        return self._body if isinstance(self._body, LateSink) else None

    @property
    def transactional_sink(self) -> TransactionalSink | None:
        """The body, if it prepares what it was given."""
        return cast("TransactionalSink", self._body) if is_transactional(self._task) else None

    def timer(self) -> None:
        """Call `timer(out)`."""
        with self._between_items():
            self._body.timer(self._out)

    def timers(self) -> list[tuple[str, Callable[[], None]]]:
        """What timers of keys call now, each with its name."""
        return [] if self._store is None else [(w, partial(call, self._out)) for w, call in self._store.due()]

    def flush(self) -> None:
        """Call `flush()`: a batch is about to be committed."""
        with self._between_items():
            if hasattr(self._body, "flush"):
                self._settle(self._body.flush())

    def close(self) -> None:
        """Call `close()`, or `close(out)` if it takes the output."""
        close = getattr(self._body, "close", None)
        with self._between_items():
            if close is not None:
                self._settle(close(*(self._out,) * len(inspect.signature(close).parameters)))

    def _between_items(self) -> AbstractContextManager[None]:
        return nullcontext() if self._store is None else self._store.between_items()


def _step(task: Task, body: Any, out: Out) -> Step:
    if task.form == "map":
        return _map(body, out)
    if task.form == "flat_map":
        return _flat_map(body, out)
    if task.form == "filter":
        return _filter(body, out)
    if task.form == "object":
        return lambda item: body.process(item, out)
    if task.form == "sink_object":
        return cast("Step", body.write)
    if task.form == "sink_batches":
        return cast("Step", body.write_many)
    return cast("Step", body)


def _map(function: Callable[[Any], Any], out: Out) -> Step:
    return lambda item: out(function(item))


def _flat_map(function: Callable[[Any], Any], out: Out) -> Step:
    def step(item: Any) -> None:
        for result in function(item):
            out(result)

    return step


def _filter(function: Callable[[Any], Any], out: Out) -> Step:
    def step(item: Any) -> None:
        if function(item):
            out(item)

    return step
