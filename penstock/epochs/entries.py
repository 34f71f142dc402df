"""An entry of the log: all that a flow needs to go on from one epoch, and nothing that lies elsewhere.

Every entry stands for itself: it names all files from which state is restored, not only the new ones, and all
handles that are not known to be committed, so that entries before it may go.
"""

from typing import Any, Literal

import msgspec

from penstock.epochs.errors import LogError
from penstock.epochs.sealed import seal, unseal
from penstock.epochs.tables import Table
from penstock.wire.orders import Position

ENTRY_VERSION = 1


class CellForm(msgspec.Struct, frozen=True, array_like=True):
    """How a task declared one of its names when it wrote a file."""

    name: str
    kind: str
    version: int = 1


class StateFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with state of one task: the changes of an epoch, or (a base) all that was known at its end."""

    task: str
    replica: int
    attempt: int
    epoch: int
    kind: Literal["changes", "base"]
    groups: tuple[tuple[int, int], ...]
    size: int
    checksum: str
    cells: tuple[CellForm, ...] = ()
    """What the task declared; nothing in files of older versions of Penstock."""
    stored_as: str | None = None
    """The name that the task had then, if it has another now."""

    @property
    def name(self) -> str:
        """Where it is in the checkpoint. No two writers ever have one name: an attempt is never repeated."""
        return state_name(self.stored_as or self.task, self.replica, self.attempt, self.epoch, self.kind)


class Handle(msgspec.Struct, frozen=True, kw_only=True):
    """Output that a sink has prepared, to be committed by whoever reads this; `content` is the sink's own."""

    task: str
    replica: int
    attempt: int
    epoch: int
    content: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is committed. `kind` tells a commit from the fence with which an attempt begins."""

    kind: Literal["commit", "fence"]
    attempt: int
    epoch: int
    positions: dict[str, dict[str, Position]] = {}
    files: tuple[StateFile, ...] = ()
    handles: tuple[Handle, ...] = ()
    tables: dict[str, Table] = {}
    pools: dict[str, int] = {}
    settings: dict[str, Any] = {}
    formats: dict[str, int] = {}

    def state_bytes(self) -> dict[str, int]:
        """The size of the files of each task that has state."""
        sizes: dict[str, int] = {}
        for file in self.files:
            sizes[file.task] = sizes.get(file.task, 0) + file.size
        return sizes


def state_name(task: str, replica: int, attempt: int, epoch: int, kind: str) -> str:
    """The name of a state file, from which its writer can be told."""
    return f"state/{attempt:08d}-{epoch:012d}-{replica:05d}-{kind}-{task}"


def written_by(name: str) -> tuple[int, int]:
    """Attempt and epoch of the state file with that name."""
    attempt, epoch, _ = name.removeprefix("state/").split("-", 2)
    return int(attempt), int(epoch)


def encode_entry(entry: Entry) -> bytes:
    """The file of an entry."""
    return seal("entry", ENTRY_VERSION, msgspec.json.encode(entry))


def decode_entry(data: bytes, file: str) -> Entry:
    """The entry in a file; a `LogError` that names it if it is not whole."""
    content = unseal("entry", ENTRY_VERSION, data, file)
    try:
        return msgspec.json.decode(content, type=Entry)
    except (msgspec.ValidationError, msgspec.DecodeError) as problem:
        raise LogError(f"{file} is not an entry of the log: {problem}") from None
