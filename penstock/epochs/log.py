"""The log of a checkpoint: entries 0, 1, 2, ..., each created by one driver, the newest the only truth.

An attempt (a start or a rollback) begins with an entry of its own, the fence: the content of the newest, with
the attempt one higher. Who was the driver before finds its next index taken, and ends. So the number of every
attempt that ever ran is in the log, and no file of one attempt can have the name of another's.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Self

import msgspec

from penstock.epochs.entries import Entry, decode_entry, encode_entry
from penstock.epochs.errors import LogError, SupersededError
from penstock.epochs.storage import Storage

DIRECTORY = "log"


@dataclass(slots=True)
class Log:
    """One driver's hold on the log; made by `begin`, useless after `SupersededError`."""

    storage: Storage
    index: int
    entry: Entry
    """The newest entry, which is this driver's own."""
    _made: dict[int, Entry] = field(default_factory=dict)
    """What it has created: entries never change, so it need not read them."""

    @classmethod
    def begin(cls, storage: Storage, *, first: Entry | None = None, at: int | None = None) -> Self:
        """Fence off whoever was there before.

        `first` is what a log that is empty begins with, `at` the index of an older entry to go back to.
        """
        while True:
            newest = newest_index(storage)
            if newest is None:
                top = first or Entry(kind="fence", attempt=0, epoch=0)
            else:
                found = read_entry(storage, newest)
                if found is None:
                    continue  # somebody collects garbage, so there is a newer one
                top = found
            begun = top if at is None else _older(storage, at, newest)
            fence = msgspec.structs.replace(begun, kind="fence", attempt=top.attempt + 1, epoch=top.epoch)
            index = 0 if newest is None else newest + 1
            if _created(storage, index, fence):
                storage.sweep(DIRECTORY)
                return cls(storage, index, fence)

    def append(self, entry: Entry, *, goes_back: bool = False) -> None:
        """Commit; `SupersededError` if somebody else has gone on from here.

        Epochs only rise, unless an attempt begins at an older one (`goes_back`).
        """
        is_older = entry.epoch < self.entry.epoch and not goes_back
        if entry.attempt != self.entry.attempt or is_older:
            raise ValueError(f"epoch {entry.epoch} of attempt {entry.attempt} cannot follow {self.entry}")
        self._create(entry)

    def read(self, index: int) -> Entry | None:
        """An entry that is there, as a look at their names has told; None if it is gone since."""
        return self._made.get(index) or read_entry(self.storage, index)

    def forget(self, indices: Collection[int]) -> None:
        """These entries will not be read again."""
        for index in indices:
            self._made.pop(index, None)

    def begin_again(self) -> None:
        """A rollback: another attempt of the same driver, from the newest entry."""
        self._create(msgspec.structs.replace(self.entry, kind="fence", attempt=self.entry.attempt + 1))

    def _create(self, entry: Entry) -> None:
        if not _created(self.storage, self.index + 1, entry):
            raise SupersededError(
                f"{name_of(self.index + 1)} is another driver's: the flow runs elsewhere, and ends here"
            )
        self.index += 1
        self.entry = self._made[self.index] = entry


def _created(storage: Storage, index: int, entry: Entry) -> bool:
    """Whether an entry is now the newest.

    A free name is not enough: a driver that slept while another went on finds the name of its next entry free
    again when garbage was collected. There is a higher one then.
    """
    return storage.create(name_of(index), encode_entry(entry)) and newest_index(storage) == index


def _older(storage: Storage, index: int, newest: int | None) -> Entry:
    entry = read_entry(storage, index)
    if entry is None:
        raise LogError(f"the log has no entry {index}; its newest is {newest}")
    return entry


def name_of(index: int) -> str:
    """The file of an entry."""
    return f"{DIRECTORY}/{index:010d}"


def indices(storage: Storage) -> list[int]:
    """Of all entries that are there, in order."""
    found = []
    for name in storage.names(DIRECTORY):
        number = name.removeprefix(f"{DIRECTORY}/")
        if not number.isdecimal():
            raise LogError(f"{name} does not belong into a log; remove it")
        found.append(int(number))
    found.sort()
    return found


def newest_index(storage: Storage) -> int | None:
    """The index of the newest entry; None if the log is empty. Of older ones any may be gone."""
    return max(indices(storage), default=None)


def newest_entry(storage: Storage) -> Entry | None:
    """The newest entry; None if the log is empty."""
    while True:
        newest = newest_index(storage)
        entry = None if newest is None else read_entry(storage, newest)
        if newest is None or entry is not None:
            return entry  # else somebody collects garbage, so there is a newer one


def read_entry(storage: Storage, index: int) -> Entry | None:
    """An entry; None if it is not there, a `LogError` if it is and cannot be used."""
    data = storage.read(name_of(index))
    return None if data is None else decode_entry(data, name_of(index))
