"""Items that end the process that works on them, in a flow that goes back to a commit each time.

After a death the next attempt goes carefully until its first commit: every worker shows on a page beside its
executor which item it is at, by a digest of the item, as it may come in another envelope; the executor tells
the driver of it with the death. An item at which workers died twice
that way, so three times with the first, blind one, is condemned: it goes the way of `on_error`.
"""

import mmap
import os
import pickle
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from penstock.epochs.storage import Storage
from penstock.wire.reports import Restart

DEATHS_ALLOWED: Final = 2
"""That were seen at an item; there was one before them that nobody saw."""

_PAGE: Final = "at-"
_NOTED: Final = "killers"
_DIGEST_BYTES: Final = 16
_PAGE_BYTES: Final = _DIGEST_BYTES + 2
_NOTHING: Final = bytes(_PAGE_BYTES)


class Caution(msgspec.Struct, frozen=True):
    """How the workers of an attempt go about: carefully in this batch, and past these items of each task."""

    batch: int
    condemned: dict[str, tuple[str, ...]] = {}


class _Noted(msgspec.Struct, frozen=True):
    """Deaths after one commit, by task and digest."""

    epoch: int
    deaths: dict[str, dict[str, int]] = {}


class Shown(NamedTuple):
    """The item that a process is at."""

    task: int
    digest: str


class Page:
    """What a worker shows of itself, in a directory of its executor; it outlives the process."""

    def __init__(self, directory: Path, task: str, replica: int) -> None:
        path = directory / f"{_PAGE}{replica:05d}-{task}"  # as Zygote.java has it
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, _PAGE_BYTES)
            self._page = mmap.mmap(descriptor, _PAGE_BYTES)
        finally:
            os.close(descriptor)
        self._page[:] = _NOTHING

    def show(self, task: int, digest: bytes) -> bytes:
        """The process is at this item of a task, by its number; what it was at before, to be shown again."""
        before = self._page[:]
        self._page[:] = digest + task.to_bytes(2, "little")
        return before

    def show_again(self, before: bytes) -> None:
        """The item is done."""
        self._page[:] = before


def digest_of(item: Any) -> bytes | None:
    """The same for an item that comes again; None for one that cannot be told."""
    try:
        return blake2b(pickle.dumps(item, 5), digest_size=_DIGEST_BYTES).digest()
    except Exception:  # noqa: BLE001 - users' classes may raise anything
        return None


def remove_pages(directory: Path) -> None:
    """The executor ends."""
    for page in directory.glob(f"{_PAGE}*"):
        page.unlink(missing_ok=True)


def caution(
    storage: Storage,
    epoch: int,
    died: Iterable[Restart],
    tasks: Sequence[str],
    *,
    again: bool,
    marks: bool = False,
) -> Caution | None:
    """For an attempt that begins after an epoch.

    None if nobody has to be careful: the flow is not started `again`, and nothing is known of this epoch.
    Where commits are `marks`, one may lie between two deaths at the same item.
    """
    noted = _noted(storage)
    deaths = noted.deaths if noted.epoch == epoch or (marks and again) else {}
    for death in died:
        if (shown := _shown(death)) is not None:
            of_task = deaths.setdefault(tasks[shown.task], {})
            of_task[shown.digest] = of_task.get(shown.digest, 0) + 1
    if deaths or not again:
        _note(storage, _Noted(epoch, deaths))
    if not (deaths or again):
        return None
    condemned = {
        task: tuple(digest for digest, count in known.items() if count >= DEATHS_ALLOWED)
        for task, known in deaths.items()
    }
    return Caution(epoch, condemned)


def _shown(death: Restart) -> Shown | None:
    content = bytes.fromhex(death.shown)
    if content == _NOTHING or len(content) != _PAGE_BYTES:
        return None
    return Shown(int.from_bytes(content[_DIGEST_BYTES:], "little"), content[:_DIGEST_BYTES].hex())


def _noted(storage: Storage) -> _Noted:
    """What is lost with this file is only known again after more deaths."""
    for name in sorted(storage.names(_NOTED), reverse=True):
        try:
            return msgspec.json.decode(storage.read(name) or b"", type=_Noted)
        except msgspec.DecodeError:
            continue
    return _Noted(-1)


def _note(storage: Storage, noted: _Noted) -> None:
    """In place of what was noted before; nothing if there is nothing to note."""
    before = sorted(storage.names(_NOTED))
    if noted.deaths:
        number = int(before[-1].rpartition("/")[2]) + 1 if before else 0
        storage.create(f"{_NOTED}/{number:010d}", msgspec.json.encode(noted))
    for name in before:
        storage.delete(name)
