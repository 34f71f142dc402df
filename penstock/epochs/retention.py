"""Which files of a checkpoint may go: what no kept entry reaches and no entry to come can name.

Deleted only after an own append, so that who was fenced off deletes nothing that its successor has. Files of
the own attempt and of a later epoch belong to the next entry; files of a higher attempt to another driver. A
base that is being written belongs to neither yet: `in_hand` names it.
"""

from collections.abc import Collection, Iterable

from penstock.epochs.entries import Entry, written_by
from penstock.epochs.log import Log, indices, name_of, read_entry
from penstock.epochs.storage import Storage

STATE_DIRECTORY = "state"


def collect(log: Log, *, keep: int, in_hand: Collection[str] = ()) -> list[str]:
    """Delete what is no longer needed when the last `keep` commits are kept; the names, for the log."""
    known = indices(log.storage)
    if log.index not in known:
        return []  # somebody else collects: another driver has gone on, and what it has reached is not known
    oldest, reached, epochs = log.index, set[str](), set[int]()
    for index in reversed(known[: known.index(log.index) + 1]):
        entry = log.read(index)
        if entry is None:
            return []
        oldest = index
        reached.update(file.name for file in entry.files)
        if entry.kind == "commit":  # an epoch may have several entries
            epochs.add(entry.epoch)
        if len(epochs) == keep:
            break
    gone = [name_of(index) for index in known if index < oldest]
    gone += [
        name
        for name in sorted(log.storage.names(STATE_DIRECTORY))
        if name not in reached and name not in in_hand and _is_past(name, log.entry)
    ]
    for name in gone:
        log.storage.delete(name)
    log.forget([index for index in known if index < oldest])
    return gone


def retain(
    storage: Storage, origins: Collection[int], entries: Iterable[Entry], *, is_still: bool
) -> list[str]:
    """Delete entries and files that none of these states is made of; the newest entry stays, as it counts.

    Unless it is still, workers write what belongs to a later epoch.
    """
    known = indices(storage)
    newest = read_entry(storage, known[-1])
    if newest is None:
        return []  # somebody else collects
    reached = {file.name for entry in entries for file in entry.files}
    reached |= {file.name for file in newest.files}
    gone = [name_of(index) for index in known[:-1] if index not in origins]
    gone += [
        name
        for name in sorted(storage.names(STATE_DIRECTORY))
        if name not in reached and (is_still or _is_past(name, newest))
    ]
    for name in gone:
        storage.delete(name)
    return gone


def _is_past(name: str, newest: Entry) -> bool:
    attempt, epoch = written_by(name)
    return attempt < newest.attempt or (attempt == newest.attempt and epoch <= newest.epoch)


def missing(storage: Storage, entry: Entry) -> list[str]:
    """Files that an entry names and that are not there."""
    there = set(storage.names(STATE_DIRECTORY))
    return [file.name for file in entry.files if file.name not in there]
