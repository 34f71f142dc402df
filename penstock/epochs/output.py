"""Output that sinks have prepared. The driver alone commits it: when the log names it, and again at a start.

So it does not matter which worker has prepared it, and whether that lives. An entry names what is prepared
until it is known to be committed; a crash in between is made up for by whoever begins with that entry.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from penstock.epochs.entries import Handle
from penstock.flow.delivery import is_transactional
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.io.protocol import TransactionalSink

Sinks = Mapping[str, TransactionalSink]
"""Those that commit, by their names."""


class OutputError(FlowError):
    """What a sink has prepared, and a commit names, cannot be committed."""


def transactional_sinks(graph: Graph) -> dict[str, TransactionalSink]:
    """Those of a flow; of a class there is one more object, which is never opened."""
    return {
        task.name: cast("TransactionalSink", task.body() if isinstance(task.body, type) else task.body)
        for task in graph.tasks
        if is_transactional(task)
    }


def commit_prepared(handles: Iterable[Handle], sinks: Sinks) -> None:
    """Let everybody see what an entry names, in the order of epochs; harmless if that was done before."""
    for handle in sorted(handles, key=lambda handle: (handle.epoch, handle.task, handle.replica)):
        sink = sinks.get(handle.task)
        if sink is None:
            raise OutputError(
                f'sink "{handle.task}" has prepared output in epoch {handle.epoch}, which only it can commit;'
                " start the flow with that sink as it was once more, or with a new checkpoint directory"
            )
        try:
            sink.commit(handle.content)
        except Exception as problem:
            raise OutputError(
                f'sink "{handle.task}" could not commit what it had prepared in epoch {handle.epoch}:'
                f" {type(problem).__name__}: {problem}"
            ) from problem
