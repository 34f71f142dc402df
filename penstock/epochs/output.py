"""Output that sinks have prepared. The driver alone commits it: when the log names it, and again at a start.

So it does not matter which worker has prepared it, and whether that lives. An entry names what is prepared
until it is known to be committed; a crash in between is made up for by whoever begins with that entry.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import cast

from penstock.epochs.entries import Entry, Handle
from penstock.epochs.errors import SupersededError
from penstock.epochs.prepared import Fetched
from penstock.flow.delivery import is_transactional
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.io.protocol import Committer, ConnectedSink, FencedError, TransactionalSink


class OutputError(FlowError):
    """What a sink has prepared, and a commit names, cannot be committed."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What a committer is told."""

    task: str
    attempt: str
    prepared_in: Path


@dataclass(frozen=True, slots=True)
class _OneByOne:
    """The committer of a sink that has `commit(description)`, and needs nothing else."""

    sink: TransactionalSink

    def commit(self, attempt: int, epoch: int, descriptions: Sequence[str]) -> None:  # noqa: ARG002
        for description in descriptions:
            self.sink.commit(description)

    def close(self) -> None: ...


class Sinks:
    """Those of a flow that commit, by their names."""

    def __init__(self, sinks: Mapping[str, TransactionalSink | ConnectedSink] | None = None) -> None:
        self._sinks = dict(sinks or {})
        self._committers: dict[str, Committer] = {}
        self._fetched: Fetched | None = None

    @classmethod
    def of(cls, graph: Graph) -> "Sinks":
        """Of a sink that is a class there is one more object, which is never opened."""
        return cls(
            {
                task.name: cast(
                    "TransactionalSink | ConnectedSink",
                    task.body() if isinstance(task.body, type) else task.body,
                )
                for task in graph.tasks
                if is_transactional(task)
            }
        )

    @property
    def names(self) -> list[str]:
        """Of the sinks."""
        return [*self._sinks]

    def begin(self, attempt: str, prepared_in: Path | Fetched) -> None:
        """Before anything is committed in an attempt; raises if a sink cannot be connected."""
        self.close()
        if isinstance(prepared_in, Fetched):
            self._fetched, prepared_in = prepared_in, prepared_in.directory
        for task, sink in self._sinks.items():
            if isinstance(sink, ConnectedSink):
                self._committers[task] = sink.committer(_Known(task, attempt, prepared_in))
            else:
                self._committers[task] = _OneByOne(sink)

    def commit(self, entry: Entry) -> None:
        """Let everybody see what an entry names, in the order of epochs; harmless if that was done before."""
        by_task = attrgetter("task")
        ordered = sorted(entry.handles, key=attrgetter("task", "epoch", "replica"))
        if not ordered:
            return
        with nullcontext() if self._fetched is None else self._fetched.at_hand():
            for task, handles in groupby(ordered, by_task):
                self._commit(task, entry.epoch, [*handles])

    def close(self) -> None:
        """Nothing more is committed."""
        for committer in self._committers.values():
            committer.close()
        self._committers.clear()
        if self._fetched is not None:
            self._fetched.close()
            self._fetched = None

    def _commit(self, task: str, epoch: int, handles: Sequence[Handle]) -> None:
        prepared = f"in epoch {', '.join(str(number) for number in sorted({one.epoch for one in handles}))}"
        committer = self._committers.get(task)
        if committer is None:
            raise OutputError(
                f'sink "{task}" has prepared output {prepared}, which only it can commit;'
                " start the flow with that sink as it was once more, or with a new checkpoint directory"
            )
        try:
            committer.commit(handles[0].attempt, epoch, [handle.content for handle in handles])
        except FencedError as problem:
            raise SupersededError(f'sink "{task}": {problem}') from problem
        except Exception as problem:
            raise OutputError(
                f'sink "{task}" could not commit what it had prepared {prepared}:'
                f" {type(problem).__name__}: {problem}"
            ) from problem
