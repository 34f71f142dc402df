"""Commits by epoch marks: the newest entry of the log is the only truth, for positions as for state."""

import secrets
from pathlib import Path

import msgspec

from penstock.epochs.boundary import KEEP, PARTS, PREPARED, Place, attempt_name, epoch_of, state_at
from penstock.epochs.entries import Entry, encode_entry
from penstock.epochs.errors import LogError
from penstock.epochs.log import Log, indices, name_of, newest_entry, newest_index, read_entry
from penstock.epochs.migration import Asked, adopted
from penstock.epochs.output import Sinks
from penstock.epochs.prepared import Fetched
from penstock.epochs.retention import STATE_DIRECTORY, collect, missing
from penstock.epochs.storage import Storage
from penstock.wire.orders import Position

_MARKS = "marks"
_TASKS = "tasks"
_NAME = "name"
_NAME_BYTES = 4


def marked_entry(storage: Storage) -> Entry | None:
    """What was committed last, if commits are marks there; None if they are boundaries, or there is none."""
    newest = newest_entry(storage)
    return newest if newest is not None and is_marked(newest) else None


def is_marked(entry: Entry) -> bool:
    """Whether it was made where commits are marks."""
    return bool(entry.settings.get(_MARKS))


def go_back_to(storage: Storage, index: int) -> None:
    """Have the next attempt begin at an older entry; nobody may use the checkpoint meanwhile.

    Epochs are not used again. What the newest entry names of prepared output stays to be committed.
    """
    older = read_entry(storage, index)
    assert older is not None, "nobody else uses the checkpoint"
    log = Log.begin(storage)
    top = log.entry
    settings = {**older.settings, _NAME: top.settings[_NAME]}
    begun = msgspec.structs.replace(
        older, kind="fence", attempt=top.attempt, epoch=top.epoch, handles=top.handles, settings=settings
    )
    log.append(begun)
    for later in indices(storage):
        if index < later < log.index:
            storage.delete(name_of(later))


def become_another(storage: Storage) -> None:
    """Make a copy a checkpoint of its own: other names of attempts, and output that is not its business."""
    newest, index = newest_entry(storage), newest_index(storage)
    assert newest is not None, "a copy has entries"
    assert index is not None, "a copy has entries"
    settings = {**newest.settings, _NAME: secrets.token_hex(_NAME_BYTES)}
    entry = msgspec.structs.replace(newest, settings=settings, handles=())
    storage.create(name_of(index + 1), encode_entry(entry))


def begin_marks(
    storage: Storage,
    root: str,
    batch: int,
    sources: dict[str, dict[str, Position]],
    asked: Asked,
    keep: int = KEEP,
    sinks: Sinks | None = None,
    *,
    is_remote: bool = False,
) -> tuple[Log, Place]:
    """Another attempt, from the newest entry; whoever was there before is fenced off.

    What that entry names of the output of `sinks` is committed, perhaps not for the first time.
    Where commits were boundaries until now, it begins at the last one: after that batch, at these positions.
    """
    log = Log.begin(storage)
    found = log.entry
    name = found.settings.get(_NAME) or secrets.token_hex(_NAME_BYTES)
    sinks = Sinks() if sinks is None else sinks
    prepared_in = Fetched(storage) if is_remote and sinks.names else Path(root) / PREPARED
    sinks.begin(attempt_name(name, found.attempt), prepared_in)
    sinks.commit(found)
    if not is_marked(found):
        found = msgspec.structs.replace(state_at(storage, epoch_of(batch)).entry, positions=sources)
    settings = {_TASKS: [*asked.tasks], _MARKS: True, _NAME: name}
    entry = msgspec.structs.replace(
        found, kind="commit", attempt=log.entry.attempt, settings=settings, handles=()
    )
    entry = adopted(entry, asked)
    if gone := missing(storage, entry):
        raise LogError(f"{gone[0]} is missing, though a commit names it; restore it")
    log.append(entry, goes_back=True)
    for left in storage.names(PARTS):  # of boundaries, to which there is no way back
        storage.delete(left)
    for left in storage.names(PREPARED):  # all that is in an entry is committed
        storage.delete(left)
    for directory in (PARTS, STATE_DIRECTORY, PREPARED):
        storage.sweep(directory)
    collect(log, keep=keep)
    place = Place(
        root,
        entry.attempt,
        entry.files,
        entry.pools,
        keep,
        dropped=asked.dropped,
        marks=True,
        checkpoint=name,
        is_remote=is_remote,
    )
    return log, place
