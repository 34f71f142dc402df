"""Items that end the process that works on them, in a flow that goes back to a commit each time.

After a death the next attempt goes carefully until its first commit: every worker shows in a file which item
it is at, by a digest of the item, as it may come in another envelope. An item at which workers died twice
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

DEATHS_ALLOWED: Final = 2
"""That were seen at an item; there was one before them that nobody saw."""

_SHOWN, _NOTED = "at", "killers.json"
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
    """What a worker shows of itself; it outlives the process."""

    def __init__(self, root: Path, task: str, replica: int) -> None:
        path = _page(root, task, replica)
        path.parent.mkdir(parents=True, exist_ok=True)
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


def caution(
    root: Path,
    epoch: int,
    died: Iterable[tuple[str, int]],
    tasks: Sequence[str],
    *,
    again: bool,
    marks: bool = False,
) -> Caution | None:
    """For an attempt that begins after an epoch; `died` are workers, by head task and replica.

    None if nobody has to be careful: the flow is not started `again`, and nothing is known of this epoch.
    Where commits are `marks`, one may lie between two deaths at the same item.
    """
    noted = _noted(root)
    deaths = noted.deaths if noted.epoch == epoch or (marks and again) else {}
    for task, replica in died:
        if (shown := _shown(root, task, replica)) is not None:
            of_task = deaths.setdefault(tasks[shown.task], {})
            of_task[shown.digest] = of_task.get(shown.digest, 0) + 1
    for page in (root / _SHOWN).glob("*"):
        page.unlink()
    if deaths:
        _note(root, _Noted(epoch, deaths))
    elif not again:
        (root / _NOTED).unlink(missing_ok=True)
        return None
    condemned = {
        task: tuple(digest for digest, count in known.items() if count >= DEATHS_ALLOWED)
        for task, known in deaths.items()
    }
    return Caution(epoch, condemned)


def _page(root: Path, task: str, replica: int) -> Path:
    return root / _SHOWN / f"{replica:05d}-{task}"


def _shown(root: Path, task: str, replica: int) -> Shown | None:
    path = _page(root, task, replica)
    content = path.read_bytes() if path.exists() else _NOTHING
    if content == _NOTHING or len(content) != _PAGE_BYTES:
        return None
    return Shown(int.from_bytes(content[_DIGEST_BYTES:], "little"), content[:_DIGEST_BYTES].hex())


def _noted(root: Path) -> _Noted:
    """What is lost with this file is only known again after more deaths."""
    try:
        return msgspec.json.decode((root / _NOTED).read_bytes(), type=_Noted)
    except (OSError, msgspec.DecodeError):
        return _Noted(-1)


def _note(root: Path, noted: _Noted) -> None:
    beside = root / f".{_NOTED}"
    beside.write_bytes(msgspec.json.encode(noted))
    beside.replace(root / _NOTED)
