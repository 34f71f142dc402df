"""Where the state of tasks is committed: in the checkpoint, if all workers can reach its files.

On file systems that every machine mounts they use them by themselves, on others of Hadoop's through their
executor.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import SparkSession

from penstock.epochs.boundary import IN_CHECKPOINT, Place, begin, epoch_of
from penstock.epochs.copying import go_back
from penstock.epochs.errors import LogError, SupersededError
from penstock.epochs.killers import caution
from penstock.epochs.log import DIRECTORY, Log
from penstock.epochs.looking import Kept, look_at
from penstock.epochs.marks import begin_marks, marked_entry
from penstock.epochs.migration import Asked, forms_of
from penstock.epochs.output import Sinks
from penstock.epochs.remote_storage import RemoteStorage
from penstock.epochs.storage import LocalStorage, Storage
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.spark.checkpoint import Committed, Splits
from penstock.spark.directory import Directory
from penstock.spark.elsewhere import Elsewhere
from penstock.spark.hadoop import Hadoop
from penstock.spark.hadoop_files import HadoopFiles, refusal
from penstock.state import declared
from penstock.wire.reports import Restart

_BY_MARKS: Final = 'its commits are epoch marks, so leave commit_by="boundaries" out'


@dataclass(frozen=True, slots=True)
class Room:
    """The state of tasks in a checkpoint. `root` is a path, or an address if only Hadoop reaches it."""

    root: str
    storage: Storage
    is_remote: bool


@dataclass(frozen=True, slots=True)
class NoRoom:
    """State is in no commit, and why, in words."""

    why: str


def room_of(spark: SparkSession, address: str, *, is_named: bool) -> Room | NoRoom:
    """Where state is committed. A directory that the user has not named is seen by no other machine."""
    directory = Directory(spark, address)
    local = directory.local
    if local is None:
        root = f"{directory.qualified}/{IN_CHECKPOINT}"
        with _told(address):
            refused = refusal(spark, address)
            return NoRoom(refused) if refused else Room(root, _elsewhere(spark, root), is_remote=True)
    is_here = (spark.sparkContext.master or "").startswith("local")
    if not (is_here or is_named):
        return NoRoom("Spark is on other machines, and no checkpoint= is given that they see, too")
    return Room(str(local / IN_CHECKPOINT), LocalStorage(local / IN_CHECKPOINT), is_remote=False)


def _elsewhere(spark: SparkSession, root: str) -> Storage:
    return RemoteStorage(HadoopFiles(spark, root))


def state_place(
    room: Room | NoRoom, address: str, graph: Graph, batch: int, keep: int, dropped: Sequence[str]
) -> Place | None:
    """Begin an attempt after that batch; None if no task has state, or nobody could commit it."""
    if isinstance(room, NoRoom):
        return None
    with _told(address):
        if not any(task.state for task in graph.tasks) and not room.storage.names(DIRECTORY):
            return None
        if marked_entry(room.storage) is not None:
            raise LogError(_BY_MARKS)
        place = begin(room.storage, room.root, batch, _asked(graph, dropped), keep)
    return msgspec.structs.replace(place, is_remote=room.is_remote)


@contextmanager
def _told(address: str) -> Iterator[None]:
    try:
        yield
    except (LogError, SupersededError) as problem:
        raise FlowError(
            f"the commits in the checkpoint {address} cannot be used: {problem}, or begin with a new"
            " checkpoint directory"
        ) from None
    except OSError as problem:
        raise FlowError(f"the commits in the checkpoint {address} cannot be reached: {problem}") from None


def room_for_marks(room: Room | NoRoom, address: str) -> Room:
    """The same where commits are to be epoch marks."""
    if isinstance(room, NoRoom):
        raise FlowError(f"commits cannot be marks in {address}: {room.why}")
    return room


def marked_sources(room: Room, address: str) -> Splits | None:
    """Positions of the newest commit by an epoch mark; None if there is none."""
    with _told(address):
        entry = marked_entry(room.storage)
    return None if entry is None else entry.positions


def begin_marked(
    room: Room,
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
    sources = {name: dict(splits) for name, splits in known.sources.items()}
    with _told(address), ExitStack() as undo:
        undo.callback(sinks.close)
        asked = _asked(graph, dropped)
        begun = begin_marks(
            room.storage, room.root, known.batch, sources, asked, keep, sinks, is_remote=room.is_remote
        )
        undo.pop_all()
    return begun


def _asked(graph: Graph, dropped: Sequence[str]) -> Asked:
    kept = [task for task in graph.tasks if task.state]
    return Asked(
        tasks=tuple(task.name for task in kept),
        forms={task.name: forms_of(declared(task.body)) for task in kept},
        was={task.name: task.was for task in kept if task.was is not None},
        dropped=tuple(dropped),
    )


def cautious(
    room: Room | NoRoom, place: Place, graph: Graph, batch: int, died: Sequence[Restart] | None
) -> Place:
    """The same for workers that go carefully, if some have died (None: the flow did not run before)."""
    assert isinstance(room, Room), "there is a place in it"
    names = [task.name for task in graph.tasks]
    found = caution(
        room.storage, epoch_of(batch), died or (), names, again=died is not None, marks=place.marks
    )
    return msgspec.structs.replace(place, caution=found)


def start_from(
    spark: SparkSession, address: str, room: Room | NoRoom, number: int, *, by_marks: bool
) -> str | None:
    """Make an older commit the last one; where later ones were put, None if there are none."""
    if isinstance(room, NoRoom):
        raise FlowError(f"a flow cannot start from an older commit in {address}: {room.why}")
    with _told(address):
        if not by_marks and marked_entry(room.storage) is not None:
            raise LogError(_BY_MARKS)
    try:
        if room.is_remote:
            return Elsewhere(address, Hadoop.of(spark)).go_back(number, room.storage)
        aside = go_back(Path(room.root).parent, number)
    except LogError as problem:
        raise FlowError(str(problem)) from None
    return None if aside is None else str(aside)


def committed_state(spark: SparkSession, address: str, room: Room | NoRoom, task: str) -> list[Kept]:
    """What a task keeps, as the checkpoint has it."""
    if isinstance(room, NoRoom):
        raise FlowError(f"no state is committed in the checkpoint {address}: {room.why}")
    batches = [int(name) for name in Directory(spark, address).names("commits") if name.isdecimal()]
    try:
        return look_at(room.storage, batches, address).kept.get(task, [])
    except LogError as problem:
        raise FlowError(str(problem)) from None
