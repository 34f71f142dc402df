"""Where the sockets of running flows are: a directory that nobody but their user may enter."""

import errno
import os
import pwd
import socket
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SOCKET = ".sock"
BEING_MADE = ".new"
_PRIVATE = 0o700
_LONGEST = 107  # bytes of a path that Linux binds a socket to
_TRY_S = 2.0
_MADE_WITHIN_S = 60.0


class PlaceError(OSError):
    """A directory or a socket cannot be trusted or used; the message says why and what would help."""


def places(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Where flows may be found. The first is where new ones open their sockets.

    The session's runtime directory if the user has one, else a directory below the temporary one. A flow
    that was started without a session (by cron, for example) is found from a terminal that has one.
    """
    found = [Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}"]
    session = Path(environment.get("XDG_RUNTIME_DIR", ""))
    if session.is_absolute() and _owner(session) == os.getuid():
        found.insert(0, session / "penstock")
    return found


def prepare(place: Path) -> None:
    """Make the directory if there is none; refuse one that is not private."""
    try:
        place.mkdir(mode=_PRIVATE)
    except FileExistsError:
        check(place)
    except OSError as error:
        raise PlaceError(f"{place} cannot be made: {error.strerror}") from None


def check(place: Path) -> None:
    """Refuse a directory that somebody else could have put there, or could enter."""
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise PlaceError(f"{place} is no directory; remove it")
    if found.st_uid != os.getuid():
        raise PlaceError(
            f"{place} belongs to {user(found.st_uid)} and is not used; have it removed,"
            " or set XDG_RUNTIME_DIR to a directory of your own"
        )
    if found.st_mode & ~_PRIVATE & 0o777:
        raise PlaceError(f"{place} can be entered by others and is not used; run: chmod 700 {place}")


def socket_path(place: Path, pid: int, run: str) -> Path:
    """Of one flow of one driver."""
    path = place / f"{pid}-{run[:8]}{SOCKET}"
    if len(os.fsencode(path)) > _LONGEST:
        raise PlaceError(
            f"{path} is too long for a socket ({_LONGEST} bytes); set XDG_RUNTIME_DIR to a shorter directory"
        )
    return path


def clear(place: Path) -> list[Path]:
    """The sockets of flows that run, by their names; what drivers that were killed have left is removed."""
    living = sorted(path for path in place.glob(f"*{SOCKET}") if not _cleared(path))
    for path in place.glob(f"*{BEING_MADE}"):
        if time.time() - _changed_at_s(path) > _MADE_WITHIN_S:
            path.unlink(missing_ok=True)
    leave(place)
    return living


def leave(place: Path) -> None:
    """Nobody needs a directory in which there is no socket."""
    with suppress(OSError):
        place.rmdir()


def connect(path: Path, timeout_s: float) -> socket.socket:
    """To a socket of this user's, or a `PlaceError`."""
    owner = _owner(path)
    if owner is not None and owner != os.getuid():
        raise PlaceError(f"{path} belongs to {user(owner)} and is not used")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        raise PlaceError(error.errno, f"{path}: {error.strerror or error}") from None
    return connection


def user(uid: int) -> str:
    """A user as people call him."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _cleared(path: Path) -> bool:
    """Whether nobody listens there: sockets get their names when somebody does, so that one is dead."""
    try:
        connect(path, _TRY_S).close()
    except PlaceError as problem:
        if problem.errno == errno.ECONNREFUSED:
            path.unlink(missing_ok=True)
        return problem.errno in (errno.ECONNREFUSED, errno.ENOENT)
    return False


def _owner(path: Path) -> int | None:
    """Of the path itself, not of what a link leads to; None if it is not there."""
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def _changed_at_s(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return time.time()
