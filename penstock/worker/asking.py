"""A body in two parts: asking it, which may be tried again or waited for, and giving on what it said, once.

What `process(item, out)` sends is kept until it has returned: of a try that failed nothing is sent.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.flow.graph import Task
from penstock.flow.record import Record
from penstock.worker.context import Out

Give = Callable[[Any, Any], object]


Sent = tuple[Callable[[Any, str | None], None], Any, str | None]
"""How something is sent, what, and to which output."""


class Asked(NamedTuple):
    """`ask(item)` is the body's answer, or what to await for it; `give(item, answer)` sends it on."""

    ask: Callable[[Any], Any]
    give: Give


class Kept:
    """The `out` of one call of `process(item, out)`."""

    __slots__ = ("_out", "_sent")

    def __init__(self, out: Out) -> None:
        self._out = out
        self._sent: list[Sent] | None = []

    def __call__(self, item: Any, output: str | None = None) -> None:
        """Keep an item for an output, the first one if none is named."""
        self._keep(self._out, item, output)

    def send(self, record: Record[Any], output: str | None = None) -> None:
        """The same for an item with metadata of its own."""
        self._keep(self._out.send, record, output)

    def _keep(self, send: Callable[[Any, str | None], None], item: Any, output: str | None) -> None:
        if output is not None:
            self._out.named(output)
        if self._sent is None:
            raise RuntimeError("out(item) was called after process(item, out) had returned")
        self._sent.append((send, item, output))

    def take(self) -> list[Sent]:
        """All that was sent; nothing can be sent from now on."""
        sent, self._sent = self._sent, None
        assert sent is not None
        return sent


def asked(task: Task, body: Any, out: Out) -> Asked:
    """The two parts of the body of a task."""
    awaited = task.concurrency is not None
    if task.form == "map":
        return Asked(body, lambda _, answer: out(answer))
    if task.form == "filter":
        return Asked(body, lambda item, answer: out(item) if answer else None)
    if task.form == "flat_map":
        return Asked(_gather_async(body) if awaited else lambda item: [*body(item)], _give_each(out))
    if task.form == "object":
        return Asked((_keep_async if awaited else _keep)(body.process, out), _give_kept)
    if task.batch_size is not None:  # a list of results, which its runner gives on
        return Asked(body.write_many if task.form == "sink_batches" else body, lambda _items, answer: answer)
    return Asked(body.write if task.form == "sink_object" else body, lambda _item, _answer: None)


def _gather_async(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def gather(item: Any) -> list[Any]:
        answer = function(item)
        return [one async for one in answer] if inspect.isasyncgen(answer) else [*await answer]

    return gather


def _give_each(out: Out) -> Give:
    def give(_item: Any, answer: list[Any]) -> None:
        for one in answer:
            out(one)

    return give


def _keep(process: Callable[[Any, Any], Any], out: Out) -> Callable[[Any], Any]:
    def ask(item: Any) -> list[Sent]:
        kept = Kept(out)
        process(item, kept)
        return kept.take()

    return ask


def _keep_async(process: Callable[[Any, Any], Any], out: Out) -> Callable[[Any], Any]:
    async def ask(item: Any) -> list[Sent]:
        kept = Kept(out)
        await process(item, kept)
        return kept.take()

    return ask


def _give_kept(_item: Any, answer: list[Sent]) -> None:
    for send, one, output in answer:
        send(one, output)
