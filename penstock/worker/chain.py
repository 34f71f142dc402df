"""Chained tasks: the first of them calls the others, in its own process, instead of sending to them.

When tasks are chained while data flow, the later ones first finish what they have: the worker of the first
stops at an item boundary, asks the bridge to let the others end, and goes on when they have. When they are
taken apart, it ships all it has and sends to them again; the bridge starts their workers. So nothing is lost,
doubled or reordered.

Where commits are epoch marks, a mark passes a chain in one step: all of its tasks write down what came before
it, and the worker answers once. A sink that prepares its output for commits comes and goes right behind a
mark, when it has nothing that is not prepared: what it has then would be told to nobody, or told twice.
"""

from collections.abc import Callable, Sequence
from typing import Any

from penstock.wire.orders import Switches
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.runner import Runner


class Chain:
    """The runners of a worker, the first of which gets the input; `prepares` says it of tasks by name."""

    def __init__(
        self,
        head: Runner,
        outbox: Outbox,
        make: Callable[[str], Runner],
        prepares: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.runners = [head]
        self._parted: list[Runner] = []
        self._outbox = outbox
        self._make = make
        self._prepares = prepares

    @property
    def tasks(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(runner.task.name for runner in self.runners)

    def within_reach(self, wanted: tuple[str, ...], *, at_mark: bool) -> tuple[str, ...]:
        """How far one can go now towards the wanted tasks; all the way at a mark, or where a batch begins."""
        now = self.tasks
        if at_mark or wanted == now:
            return wanted
        if len(now) > 1 and self._prepares(now[-1]):
            return now
        return wanted[:-1] if len(wanted) > 1 and self._prepares(wanted[-1]) else wanted

    def join(self, names: Sequence[str], switches: Switches, epoch: int = 0) -> None:
        """Host these tasks too, behind that epoch; their own workers have ended."""
        for name in names:
            runner = self._make(name)
            runner.context.batch = self.runners[0].context.batch
            runner.lay(switches, epoch)
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

    def part(self, keep: int = 1) -> None:
        """Host the first `keep` tasks only; the others are closed in order, and all they sent is shipped.

        A sink that prepares is closed before them: its own worker gets what they send at last.
        """
        if len(self.runners) > max(keep, 1) + 1 and self._prepares(self.tasks[-1]):
            self._part(len(self.runners) - 1)
        self._part(keep)

    def _part(self, keep: int) -> None:
        parted = self.runners[keep:]
        for runner in parted:
            runner.flush()
            runner.close()
        self._outbox.flush()
        last = self.runners[keep - 1]
        for stream in last.streams:
            stream.link = None
        last.follower = None
        self._parted += parted
        self.runners = self.runners[:keep]
        self._outbox.streams = [stream for runner in self.runners for stream in runner.streams]
