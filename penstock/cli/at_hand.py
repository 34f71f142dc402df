"""A checkpoint that a user names, wherever it is. Only one that is elsewhere needs Java."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.epochs.errors import LogError
from penstock.flow.errors import FlowError
from penstock.spark.hold_by_lock import LockHold
from penstock.spark.holder import new_holder

if TYPE_CHECKING:
    from penstock.spark.elsewhere import Elsewhere
    from penstock.spark.holder import Hold

_FILE: Final = "file:"


def is_elsewhere(address: str) -> bool:
    """Whether it names another file system than this machine's own."""
    return ":/" in address and not address.startswith(_FILE)


def path_of(address: str) -> Path:
    """The path of one that is here.

    >>> path_of("file:///data/primes"), path_of("primes")
    (PosixPath('/data/primes'), PosixPath('primes'))
    """
    if not address.startswith(_FILE):
        return Path(address)
    return Path("/" + address.removeprefix(_FILE).lstrip("/"))


@contextmanager
def at_hand(address: str) -> Iterator[Path]:
    """Where on this machine its files can be looked at: where they are, or where they were fetched to."""
    if not is_elsewhere(address):
        yield path_of(address)
        return
    with tempfile.TemporaryDirectory(prefix="penstock-looked-at-") as scratch:
        place = Path(scratch) / "checkpoint"
        elsewhere(address).fetch(place)
        try:
            yield place
        except LogError as problem:
            raise LogError(str(problem).replace(str(place), address)) from None


@contextmanager
def held(checkpoint: str, by: str) -> Iterator[None]:
    """While no flow runs there, and none can be started."""
    holder = new_holder(by, [os.getpid()])
    hold: Hold
    if is_elsewhere(checkpoint):
        from penstock.spark.hold_by_beat import BeatHold

        there = elsewhere(checkpoint)
        if not there.is_there:
            raise FlowError(f"{checkpoint} is no directory")
        hold = BeatHold(there.directory, holder)
    else:
        place = path_of(checkpoint)
        if not place.is_dir():
            raise FlowError(f"{checkpoint} is no directory")
        hold = LockHold(place, holder)
    try:
        yield
    finally:
        hold.release()


def elsewhere(address: str) -> "Elsewhere":
    """By a Java virtual machine of its own, unless there is one."""
    from penstock.spark.elsewhere import Elsewhere

    return Elsewhere(address)
