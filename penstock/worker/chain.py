"""Chained tasks: the first of them calls the others, in its own process, instead of sending to them.

When tasks are chained while data flow, the later ones first finish what they have: the worker of the first
stops at an item boundary, asks the bridge to let the others end, and goes on when they have. When they are
taken apart, it ships all it has and sends to them again; the bridge starts their workers. So nothing is lost,
doubled or reordered.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.wire.orders import Switches
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.runner import Runner


class Chain:
    """The runners of a worker, the first of which gets the input."""

    def __init__(self, head: Runner, outbox: Outbox, make: Callable[[str], Runner]) -> None:
        self.runners = [head]
        self._parted: list[Runner] = []
        self._outbox = outbox
        self._make = make

    @property
    def tasks(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(runner.task.name for runner in self.runners)

    def join(self, names: Sequence[str], switches: Switches) -> None:
        """Host these tasks too; their own workers have ended."""
        for name in names:
            runner = self._make(name)
            runner.context.batch = self.runners[0].context.batch
            runner.lay(switches)
            runner.open()
            runner.start_timer()
            sender = self.runners[-1]
            (stream,) = [stream for stream in sender.streams if stream.spec.receiver == name]
            stream.link = runner.link(stream)
            sender.follower = runner
            self.runners.append(runner)
            self._outbox.streams = [*self._outbox.streams, *runner.streams]

    def take_parted(self) -> list[Runner]:
        """The tasks that were let go since the last call: their last report is still to be made."""
        parted, self._parted = self._parted, []
        return parted

    def unshippable(self, stream: OutStream, item: Any, problem: Exception) -> None:
        """A result that cannot travel is an error of the task that sent it."""
        for runner in self.runners:
            if stream in runner.streams:
                runner.failures.result_failed(item, problem)

    def part(self) -> None:
        """Host the first task only; the others are closed in their order, and all they sent is shipped."""
        for runner in self.runners[1:]:
            runner.flush()
            runner.close()
        self._outbox.flush()
        head = self.runners[0]
        for stream in head.streams:
            stream.link = None
        head.follower = None
        self._parted += self.runners[1:]
        self.runners = [head]
        self._outbox.streams = list(head.streams)
