"""A task that takes lists of items: what has arrived, at most as many as its `size`.

Result i of a batch belongs to item i: its id, its tag and its errors are those of that item. A batch that
raises is tried again item by item, unless an error ends the flow anyway. Items of two inputs are never in one
batch. Chained behind another task, it gathers what that task hands on until the input of the chain is worked
off (`Runner.settle`).
"""

import time
from collections.abc import Callable, Mapping, Sequence, Set, Sized
from typing import Any, NamedTuple

from penstock.flow.record import Metadata
from penstock.wire.envelope import Envelope, Tag
from penstock.wire.ids import ItemId
from penstock.worker.call_loop import CallLoop
from penstock.worker.measurements import Timed as TimedItem
from penstock.worker.outbox import NO_WAY, Came, OutStream
from penstock.worker.runner import Host, ItemRunner, Runner, Timed
from penstock.worker.steps import Step


class WrongResults(ValueError):  # noqa: N818 - said of what a function returned
    """A function of a list of items did not return a list with a result for each of them."""


class Tagged(NamedTuple):
    """A tagged item that waits for its batch: its place in it, and its times as in `measurements.Timed`."""

    place: int
    channel: tuple[int, int]
    emit_ns: int
    ship_ns: int
    arrived_ns: int
    origin_ns: int
    entry_ns: int


class Batch(NamedTuple):
    """Items of one input, with their ids if they have any, and those that are tagged."""

    input: str | None
    items: list[Any]
    ids: list[ItemId | None] | None
    tagged: list[Tagged]
    metadata: list[Metadata | None]
    """Of the first items; those behind have none."""

    def describe(self, metadata: Sequence[Metadata | None]) -> None:
        """The items that come next have these."""
        self.metadata.extend([None] * (len(self.items) - len(self.metadata)))
        self.metadata.extend(metadata)

    def metadata_of(self, place: int) -> Metadata | None:
        """What an item has."""
        return self.metadata[place] if place < len(self.metadata) else None

    def cut(self, start: int, end: int) -> "Batch":
        """The items from `start` up to `end`."""
        return Batch(
            self.input,
            self.items[start:end],
            None if self.ids is None else self.ids[start:end],
            [one._replace(place=one.place - start) for one in self.tagged if start <= one.place < end],
            self.metadata[start:end],
        )


class BatchRunner(Runner):
    """A replica of a task with `map_batches`, `flat_map_batches`, or of a sink with `write_many`."""

    def __init__(self, host: Host, name: str, loop: CallLoop | None = None) -> None:
        super().__init__(host, name, loop)
        assert self.task.batch_size is not None, "the form of the task has batches"
        self._size = self.task.batch_size
        self._with_ids = host.plan.graph.ids
        self._is_flat = self.task.form == "flat_map_batches"
        self._is_sink = self.task.kind == "sink"
        self._by_key = any(stream.spec.wiring == "key" for stream in self.streams)
        self._waiting = self._empty(None)

    @property
    def is_full(self) -> bool:
        """Whether a whole batch waits."""
        return len(self._waiting.items) >= self._size

    def take(self, envelope: Envelope, stream: str, arrived_ns: int) -> None:
        """The items of an envelope of that stream wait for their batch."""
        waiting = self._turn_to(stream)
        first = len(waiting.items)
        for tag in envelope.tags:
            waiting.tagged.append(
                Tagged(
                    first + tag.item,
                    (envelope.stream, envelope.sender),
                    tag.emit_ns,
                    envelope.ship_ns,
                    arrived_ns,
                    tag.origin_ns,
                    self.measured.entry_ns(envelope.stream, tag),
                )
            )
        if envelope.metadata is not None:
            waiting.describe(envelope.metadata)
        waiting.items.extend(envelope.items)
        if waiting.ids is not None:
            waiting.ids.extend(envelope.ids or [None] * len(envelope.items))

    def link(self, stream: OutStream) -> Callable[[Any], None]:
        """What hands an item to this task: it waits for its batch, and a full one is worked off at once."""
        outbox, name = self._outbox, stream.spec.name

        def hand_on(item: Any) -> None:
            before = outbox.descend(stream)
            try:
                waiting = self._turn_to(name)
                if outbox.origin_ns is not None:
                    waiting.tagged.append(self._handed_on(stream, len(waiting.items), outbox.origin_ns))
                if outbox.metadata is not None:
                    waiting.describe([outbox.metadata])
                waiting.items.append(item)
                if waiting.ids is not None:
                    waiting.ids.append(outbox.parent_id)
            finally:
                outbox.ascend(before)
            self.measured.chained_in += 1
            if self.is_full:
                self._run_waiting()

        return hand_on

    def work_off(self) -> None:
        """Process all that waits."""
        self._run_waiting()
        self.settle()

    def _watched(self, timed: Timed) -> Step:
        return timed.timed_batch(self._body.step, self.task.name)

    def _empty(self, stream: str | None) -> Batch:
        return Batch(stream, [], [] if self._with_ids else None, [], [])

    def _turn_to(self, stream: str) -> Batch:
        """What waits, all of it of this stream."""
        if self._waiting.input != stream:
            self._run_waiting()
            self._waiting = self._empty(stream)
        return self._waiting

    def _handed_on(self, stream: OutStream, place: int, origin_ns: int) -> Tagged:
        """A tagged item came from the task before without any delay, and waits from now on."""
        outbox, now_ns = self._outbox, time.monotonic_ns()
        at_ns = outbox.time.of(now_ns)
        entry_ns = self.measured.entry_ns(stream.number, Tag(0, at_ns, origin_ns, outbox.entry_ns(stream)))
        channel = (stream.number, self.context.replica)
        return Tagged(place, channel, at_ns, at_ns, now_ns, origin_ns, entry_ns)

    def _run_waiting(self) -> None:
        waiting, count = self._waiting, len(self._waiting.items)
        if not count:
            return
        self._waiting = self._empty(waiting.input)
        outbox = self._outbox
        before, came, metadata = (outbox.parent_id, outbox.origin_ns), outbox.came, outbox.metadata
        outbox.begin_item(None, None)
        outbox.came = NO_WAY
        if count <= self._size:
            self._run(waiting)
        else:
            for start in range(0, count, self._size):
                self._run(waiting.cut(start, start + self._size))
        outbox.came = came
        outbox.metadata = metadata
        outbox.ascend(before)

    def _run(self, batch: Batch) -> None:
        """Call the user's code, send what it returned, and keep the times of tagged items."""
        outbox, context = self._outbox, self.context
        context.input, context.item_ids = batch.input, batch.ids
        is_alone = len(batch.items) == 1
        context.item_id = batch.ids[0] if batch.ids is not None and is_alone else None
        outbox.describe(batch.metadata_of(0) if is_alone else None)
        behind_ns, outbox.behind_ns = outbox.behind_ns, 0
        entered_ns = time.monotonic_ns()
        try:
            results = self._results(batch.items)
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            outbox.behind_ns = behind_ns + time.monotonic_ns() - entered_ns
            self._raised(batch, problem)
            return
        called_ns = time.monotonic_ns()
        self.measured.batch_taken(entered_ns, len(batch.tagged))
        self._send(batch, results, entered_ns)
        done_ns = time.monotonic_ns()
        outbox.behind_ns = behind_ns + done_ns - entered_ns
        # What is chained behind takes its time while results are sent, and is timed for tagged items only.
        own_ns = (done_ns if self.follower is None else called_ns) - entered_ns
        took, ahead_ns, count = (entered_ns, done_ns, own_ns), outbox.time.ahead_ns, len(batch.items)
        self.measured.batch_done(
            [
                TimedItem(*one[1:5], *took, one.origin_ns, ahead_ns, one.entry_ns, shared_by=count)
                for one in batch.tagged
            ]
        )

    def _results(self, items: list[Any]) -> Sequence[Any]:
        returned = self._body.step([*items])  # theirs to sort or to empty: whose results they are stays known
        return () if self._is_sink else _checked(returned, len(items), self.task.form)

    def _raised(self, batch: Batch, problem: Exception) -> None:
        """By the error policy: of an item, if there is only one."""
        if len(batch.items) == 1:
            self.failures.item_failed(batch.items[0], problem)
        elif self.task.on_error == "fail":
            self.failures.batch_failed(batch.items, problem)
        else:
            for place in range(len(batch.items)):
                self._run(batch.cut(place, place + 1))

    def _send(self, batch: Batch, results: Sequence[Any], entered_ns: int) -> None:
        """Send all results; those that are shipped at once travel together, unless another task is behind."""
        if self._is_sink:
            return
        outbox = self._outbox
        outbox.holds = self.follower is None
        start = 0
        for one in batch.tagged:
            self._send_some(batch, results, start, one.place)
            outbox.origin_ns = one.origin_ns
            outbox.came = Came(one.channel[0], one.entry_ns, entered_ns)
            self._send_one(batch, results, one.place)
            outbox.origin_ns, outbox.came = None, NO_WAY
            start = one.place + 1
        self._send_some(batch, results, start, len(batch.items))
        if outbox.holds:
            outbox.release()

    def _send_some(self, batch: Batch, results: Sequence[Any], start: int, end: int) -> None:
        """Send results of items without tags: at once if there is nothing to be said of each of them."""
        is_plain = batch.ids is None and not batch.metadata and not self._by_key
        if start < end and is_plain and self.follower is None:
            some = results[start:end]
            if not self._is_flat:
                self._out.many([*some])
                return
            if all(isinstance(made, list | tuple) for made in some):
                self._out.many([result for made in some for result in made])
                return
        for place in range(start, end):
            self._send_one(batch, results, place)

    def _send_one(self, batch: Batch, results: Sequence[Any], place: int) -> None:
        """Send the result of an item, or several; an error in that is the item's."""
        if batch.ids is not None:
            self.context.item_id = self._outbox.parent_id = batch.ids[place]
        if batch.metadata:
            self._outbox.describe(batch.metadata_of(place))
        try:
            if self._is_flat:
                for result in results[place]:
                    self._out(result)
            else:
                self._out(results[place])
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            self.failures.item_failed(batch.items[place], problem)


def runner_of(host: Host, name: str, loop: CallLoop | None = None) -> Runner:
    """A replica of a task, of the kind that its form asks for."""
    kind = ItemRunner if host.plan.graph.task(name).batch_size is None else BatchRunner
    runner = kind(host, name, loop)
    if host.page is not None:
        runner.go_carefully(host.page)
    return runner


def _checked(returned: object, count: int, form: str) -> Sequence[Any]:
    """The results of so many items, as a list."""
    if not isinstance(returned, list | tuple):
        if isinstance(returned, str | bytes | Mapping | Set) or not isinstance(returned, Sized):
            raise WrongResults(
                f"{form} takes a list with a result for each item, but its function returned"
                f" {type(returned).__name__}"
            )
        returned = _listed(returned)
    if len(returned) != count:
        raise WrongResults(
            f"the function returned {len(returned)} results for a batch of {count}"
            f" {'item' if count == 1 else 'items'}; result i must belong to item i"
        )
    return returned


def _listed(array: Any) -> list[Any]:
    """Of NumPy and the like."""
    return [*array]
