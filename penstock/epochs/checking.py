"""What is wrong with a checkpoint on this machine, in words: files that are missing, torn or foreign."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.epochs.batches import COMMITS, OFFSETS
from penstock.epochs.boundary import IN_CHECKPOINT, PARTS, epoch_of_part, read_part
from penstock.epochs.commits import Commit, commits_of, storage_of
from penstock.epochs.entries import StateFile, written_by
from penstock.epochs.errors import LogError
from penstock.epochs.log import DIRECTORY, read_entry
from penstock.epochs.retention import STATE_DIRECTORY
from penstock.epochs.state_files import read_changes
from penstock.epochs.storage import UNFINISHED, Storage

_SPARKS: Final = re.compile(r"\.?[0-9]+(\.crc|\.tmp|\.compact)?|\..*\.tmp(\.crc)?")


@dataclass(frozen=True, slots=True)
class Checked:
    """A checkpoint that was looked through."""

    commits: tuple[Commit, ...]
    """From which a flow can start, with files that were read."""
    problems: tuple[str, ...]
    """What a start would refuse, or what does not belong here."""
    unused: tuple[str, ...]
    """Files that no commit needs: of batches that were not committed, or left behind by a crash."""


def check(checkpoint: Path) -> Checked:
    """Read every file that a commit needs, and look at the names of all others."""
    storage = storage_of(checkpoint)
    problems = [*_foreign(checkpoint, storage)]
    known = commits_of(checkpoint)
    damage = _Damage(storage)
    whole = []
    for commit in known:
        if commit.problem is None and not (found := damage.of(commit)):
            whole.append(commit)
        elif commit.problem is None:
            problems += found
        elif commit.state is not None or commit is known[-1]:  # else it is not kept any more
            problems.append(f"commit {commit.number} cannot be used: {commit.problem}")
    problems += [problem for problem in _unreadable(storage) if problem not in problems]
    needed = {name for commit in known for name in commit.needs} | _of_newest_entry(storage)
    there = [name for directory in (PARTS, STATE_DIRECTORY) for name in storage.names(directory)]
    unused = [name for name in there if name not in needed] + _unfinished(checkpoint)
    return Checked(tuple(whole), tuple(dict.fromkeys(problems)), tuple(unused))


def _of_newest_entry(storage: Storage) -> set[str]:
    """What the running attempt began with: nobody removes that before the next one."""
    newest = max((int(number) for number in _numbers(storage) if number.isdecimal()), default=None)
    try:
        entry = None if newest is None else read_entry(storage, newest)
    except LogError:
        return set()  # told as damaged
    return set() if entry is None else {file.name for file in entry.files}


def _numbers(storage: Storage) -> list[str]:
    return [name.removeprefix(f"{DIRECTORY}/") for name in storage.names(DIRECTORY)]


class _Damage:
    """What is wrong with files of state, each read once."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[str, str | None] = {}

    def of(self, commit: Commit) -> list[str]:
        files = () if commit.state is None else commit.state.entry.files
        found = (self._problem(file) for file in files)
        return [problem for problem in found if problem is not None]

    def _problem(self, file: StateFile) -> str | None:
        if file.name not in self._known:
            self._known[file.name] = _tried(lambda: read_changes(self._storage, file))
        return self._known[file.name]


def _unreadable(storage: Storage) -> Iterator[str]:
    """Entries and parts that are not whole."""
    for name in sorted(storage.names(DIRECTORY)):
        number = name.removeprefix(f"{DIRECTORY}/")
        if number.isdecimal() and (problem := _tried(lambda: read_entry(storage, int(number)))):  # noqa: B023
            yield problem
    for name in sorted(storage.names(PARTS)):
        if problem := _tried(lambda: read_part(storage, name)):  # noqa: B023 - called at once
            yield problem


def _foreign(checkpoint: Path, storage: Storage) -> Iterator[str]:
    """Files that nobody of us has written."""
    for directory in (COMMITS, OFFSETS):
        for file in sorted((checkpoint / directory).glob("*")):
            if not _SPARKS.fullmatch(file.name):
                yield f"{directory}/{file.name} is none of Spark's files; remove it"
    for name in sorted(storage.names(DIRECTORY)):
        if not name.removeprefix(f"{DIRECTORY}/").isdecimal():
            yield f"{name} does not belong into a log; remove it"
    for name in sorted(storage.names(STATE_DIRECTORY)):
        if _is_no(written_by, name):
            yield f"{name} does not belong among files of state; remove it"
    for name in sorted(storage.names(PARTS)):
        if _is_no(epoch_of_part, name):
            yield f"{name} does not belong among the parts of commits; remove it"


def _unfinished(checkpoint: Path) -> list[str]:
    root = checkpoint / IN_CHECKPOINT
    return [str(file.relative_to(root)) for file in sorted(root.glob(f"*/{UNFINISHED}*"))]


def _is_no(named: Callable[[str], object], name: str) -> bool:
    try:
        named(name)
    except (ValueError, LogError):
        return True
    return False


def _tried(read: Callable[[], object]) -> str | None:
    try:
        read()
    except LogError as problem:
        return str(problem)
    return None
