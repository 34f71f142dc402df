"""Where the state of tasks is committed: in the checkpoint, if all workers see its files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import SparkSession

from penstock.epochs.boundary import IN_CHECKPOINT, Place, begin, epoch_of
from penstock.epochs.commits import storage_of
from penstock.epochs.copying import go_back
from penstock.epochs.errors import LogError, SupersededError
from penstock.epochs.killers import caution
from penstock.epochs.log import Log
from penstock.epochs.looking import Kept, look
from penstock.epochs.marks import begin_marks, marked_entry
from penstock.epochs.migration import Asked, forms_of
from penstock.epochs.output import Sinks
from penstock.epochs.storage import LocalStorage
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.spark.checkpoint import Committed, Splits
from penstock.spark.directory import Directory
from penstock.state import declared

_BY_MARKS: Final = "its commits are epoch marks, so start it with marks=True"


def state_root(spark: SparkSession, address: str) -> Path | None:
    """Where in a checkpoint; None if it is not on this machine, or its workers are not."""
    local = Directory(spark, address).local
    is_here = (spark.sparkContext.master or "").startswith("local")
    return local / IN_CHECKPOINT if local is not None and is_here else None


def state_place(
    spark: SparkSession, address: str, graph: Graph, batch: int, keep: int, dropped: Sequence[str]
) -> Place | None:
    """Begin an attempt after that batch; None if no task has state, or nobody could commit it."""
    tasks = [task.name for task in graph.tasks if task.state]
    root = state_root(spark, address)
    if root is None or (not tasks and not root.exists()):
        return None
    storage = LocalStorage(root)
    with _told(address):
        if marked_entry(storage) is not None:
            raise LogError(_BY_MARKS)
        return begin(storage, str(root), batch, _asked(graph, dropped), keep)


@contextmanager
def _told(address: str) -> Iterator[None]:
    try:
        yield
    except (LogError, SupersededError) as problem:
        raise FlowError(
            f"the state in the checkpoint {address} cannot be used: {problem}, or begin with a new checkpoint"
            " directory"
        ) from None


def marked_sources(spark: SparkSession, address: str) -> Splits | None:
    """Positions of the newest commit by an epoch mark; None if there is none."""
    with _told(address):
        entry = marked_entry(LocalStorage(_here(spark, address)))
    return None if entry is None else entry.positions


def begin_marked(
    spark: SparkSession,
    address: str,
    graph: Graph,
    known: Committed,
    keep: int,
    dropped: Sequence[str],
    sinks: Sinks,
) -> tuple[Log, Place]:
    """Begin an attempt whose commits are epoch marks, after the newest of them, which `sinks` commit.

    If there is none yet it begins after what Spark has committed, which is `known`.
    """
    root = _here(spark, address)
    sources = {name: dict(splits) for name, splits in known.sources.items()}
    with _told(address):
        asked = _asked(graph, dropped)
        return begin_marks(LocalStorage(root), str(root), known.batch, sources, asked, keep, sinks)


def _here(spark: SparkSession, address: str) -> Path:
    root = state_root(spark, address)
    if root is None:
        raise FlowError(
            f"marks=True needs a checkpoint on this machine, and workers too: {address}, or Spark, is"
            " elsewhere"
        )
    return root


def _asked(graph: Graph, dropped: Sequence[str]) -> Asked:
    kept = [task for task in graph.tasks if task.state]
    return Asked(
        tasks=tuple(task.name for task in kept),
        forms={task.name: forms_of(declared(task.body)) for task in kept},
        was={task.name: task.was for task in kept if task.was is not None},
        dropped=tuple(dropped),
    )


def cautious(place: Place, graph: Graph, batch: int, died: Sequence[tuple[str, int]] | None) -> Place:
    """The same for workers that go carefully, if some have died (None: the flow did not run before)."""
    names = [task.name for task in graph.tasks]
    found = caution(
        Path(place.root), epoch_of(batch), died or (), names, again=died is not None, marks=place.marks
    )
    return msgspec.structs.replace(place, caution=found)


def start_from(spark: SparkSession, address: str, number: int, *, marks: bool) -> str | None:
    """Make an older commit the last one; where later ones were put, None if there are none."""
    local = Directory(spark, address).local
    if local is None:
        raise FlowError(
            f"{address} is not on this machine: a flow can start from an older commit only where it is"
        )
    with _told(address):
        if not marks and marked_entry(storage_of(local)) is not None:
            raise LogError(_BY_MARKS)
    try:
        aside = go_back(local, number)
    except LogError as problem:
        raise FlowError(str(problem)) from None
    return None if aside is None else str(aside)


def committed_state(spark: SparkSession, address: str, task: str) -> list[Kept]:
    """What a task keeps, as the checkpoint has it."""
    root = state_root(spark, address)
    if root is None:
        raise FlowError(f"no state is committed in the checkpoint {address}: it, or Spark, is elsewhere")
    try:
        return look(root.parent).kept.get(task, [])
    except LogError as problem:
        raise FlowError(str(problem)) from None
