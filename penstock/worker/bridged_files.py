"""Files of a checkpoint that only the executor can reach: a worker asks for them over a socket."""

import socket
import struct
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from penstock.epochs.boundary import Place
from penstock.epochs.remote_storage import RemoteStorage
from penstock.epochs.storage import LocalStorage, Storage
from penstock.wire.orders import Plan

_SOCKET: Final = "store.sock"
_NAMES, _READ, _CREATE, _DELETE, _UPLOAD = 1, 2, 3, 4, 5
_NO, _PROBLEM = 1, 2
_ANSWER: Final = struct.Struct(">Bq")


class BridgedFiles:
    """`RemoteFiles` (penstock/epochs/remote_storage.py) by `StoreServer.java`; what fails is an `OSError`.

    Connected at its first use, so that no two processes ever share a connection.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._channel: socket.socket | None = None

    def names(self, directory: str) -> list[str]:
        """Names in a directory, without it; none if it is not there."""
        return (self._ask(_NAMES, directory) or b"").decode().splitlines()

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        return self._ask(_READ, name)

    def create(self, name: str, content: bytes) -> bool:
        """Durable when this returns; False if there is one of that name."""
        return self._ask(_CREATE, name, content) is not None

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        self._ask(_DELETE, name)

    def upload(self, name: str, content: bytes) -> None:
        """Make a file, whole, by and by: before anybody hears what the worker says after this."""
        self._ask(_UPLOAD, name, content)

    def _ask(self, what: int, name: str, more: bytes | None = None) -> bytes | None:
        """The answer; None for no."""
        if self._channel is None:
            self._channel = socket.socket(socket.AF_UNIX)
            self._channel.connect(str(self._place))
        named = name.encode()
        question = struct.pack(">BI", what, len(named)) + named
        self._channel.sendall(question if more is None else question + struct.pack(">q", len(more)))
        if more is not None:
            self._channel.sendall(more)
        said, length = _ANSWER.unpack(self._exactly(_ANSWER.size))
        content = self._exactly(length)
        if said == _PROBLEM:
            raise OSError(f"the checkpoint: {content.decode(errors='replace')}")
        return None if said == _NO else content

    def _exactly(self, length: int) -> bytes:
        assert self._channel is not None, "a question was asked"
        found = bytearray(length)
        view, filled = memoryview(found), 0
        while filled < length:
            count = self._channel.recv_into(view[filled:])
            if count == 0:
                raise OSError("the executor has ended, and with it the way to the checkpoint")
            filled += count
        return bytes(found)


def store_beside(address: str) -> Path:
    """The socket for files, beside that of the workers."""
    return Path(address).with_name(_SOCKET)


def in_executor(plan: Plan, address: str) -> Plan:
    """The same for workers of an executor that has this socket for them."""
    place = plan.state
    if place is None:
        return plan
    through = str(store_beside(address)) if place.is_remote else ""
    beside = str(Path(address).parent)
    return replace(plan, state=msgspec.structs.replace(place, through=through, beside=beside))


class UploadingStorage(RemoteStorage):
    """`Storage` of a worker that does not wait until a new file is there: its executor does."""

    def __init__(self, files: BridgedFiles) -> None:
        super().__init__(files)
        self._bridge = files

    def create(self, name: str, content: bytes) -> bool:
        """The flow goes back to its last commit if it cannot be made."""
        self._bridge.upload(name, content)
        return True


def storage_at(place: Place) -> Storage:
    """Where a worker finds the files of state. With epoch marks nobody counts on them before their report."""
    if not place.is_remote:
        return LocalStorage(Path(place.root))
    files = _bridged(place.through)
    return UploadingStorage(files) if place.marks else RemoteStorage(files)


@cache
def _bridged(through: str) -> BridgedFiles:
    """One connection for all tasks of a process; its parent has none."""
    return BridgedFiles(Path(through))
