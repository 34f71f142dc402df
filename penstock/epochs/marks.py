"""Commits by epoch marks: the newest entry of the log is the only truth, for positions as for state."""

import secrets
from types import MappingProxyType

import msgspec

from penstock.epochs.boundary import KEEP, PARTS, Place, epoch_of, state_at
from penstock.epochs.entries import Entry
from penstock.epochs.errors import LogError
from penstock.epochs.log import Log, newest_entry
from penstock.epochs.migration import Asked, adopted
from penstock.epochs.output import Sinks, commit_prepared
from penstock.epochs.retention import STATE_DIRECTORY, collect, missing
from penstock.epochs.storage import Storage
from penstock.wire.orders import Position

_MARKS = "marks"
_TASKS = "tasks"
_NAME = "name"
_NAME_BYTES = 4
_NO_SINKS: Sinks = MappingProxyType({})


def marked_entry(storage: Storage) -> Entry | None:
    """What was committed last, if commits are marks there; None if they are boundaries, or there is none."""
    newest = newest_entry(storage)
    return newest if newest is not None and newest.settings.get(_MARKS) else None


def begin_marks(
    storage: Storage,
    root: str,
    batch: int,
    sources: dict[str, dict[str, Position]],
    asked: Asked,
    keep: int = KEEP,
    sinks: Sinks = _NO_SINKS,
) -> tuple[Log, Place]:
    """Another attempt, from the newest entry; whoever was there before is fenced off.

    What that entry names of the output of `sinks` is committed, perhaps not for the first time.
    Where commits were boundaries until now, it begins at the last one: after that batch, at these positions.
    """
    log = Log.begin(storage)
    found = log.entry
    commit_prepared(found.handles, sinks)
    if not found.settings.get(_MARKS):
        found = msgspec.structs.replace(state_at(storage, epoch_of(batch)).entry, positions=sources)
    name = found.settings.get(_NAME) or secrets.token_hex(_NAME_BYTES)
    settings = {_TASKS: [*asked.tasks], _MARKS: True, _NAME: name}
    entry = msgspec.structs.replace(
        found, kind="commit", attempt=log.entry.attempt, settings=settings, handles=()
    )
    entry = adopted(entry, asked)
    if gone := missing(storage, entry):
        raise LogError(f"{gone[0]} is missing, though a commit names it; restore it")
    log.append(entry, goes_back=True)
    for name in storage.names(PARTS):  # of boundaries, to which there is no way back
        storage.delete(name)
    for directory in (PARTS, STATE_DIRECTORY):
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
    )
    return log, place
