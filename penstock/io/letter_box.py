"""The directory of a flow's dead letters, and which of them were played back.

    TASK-REPLICA.jsonl              letters; workers only append to them
    replay-N/TASK-REPLICA.jsonl     letters of the N-th replay: what failed again
    replay-N/marks.json             up to which byte the letters of each file are played back

A replay writes into `.replay-N`, which is renamed when it is done: that one step marks the letters it played
back and shows those that failed again. A replay that is killed leaves everything as it was.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from penstock.io.letters import LetterError, Stretch, whole_lines
from penstock.io.part_file import make_directory, sync_directory

_MARKS = "marks.json"
_LOCK = ".replay.lock"
_DONE = re.compile(r"replay-(\d+)")


class LetterBox:
    """The letters in a directory, or in one file of it."""

    def __init__(self, place: Path) -> None:
        if not place.exists():
            raise LetterError(f"no dead letters: {place} is not there")
        self.place = place
        self._directory = place if place.is_dir() else place.parent
        if _DONE.fullmatch(self._directory.name) and not place.is_dir():
            self._directory = self._directory.parent

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One replay at a time."""
        descriptor = os.open(self._directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LetterError(f"the dead letters in {self._directory} are being replayed now") from None
            yield
        finally:
            os.close(descriptor)

    def waiting(self) -> tuple[dict[str, list[Stretch]], list[str]]:
        """The letters that were not played back, by task, and what is wrong with some of the files."""
        marks, found, remarks = self._marks(), dict[str, list[Stretch]](), []
        for path in self._files():
            mark = marks.get(self._name(path), 0)
            if mark > path.stat().st_size:
                raise LetterError(
                    f"{path} is shorter than what was played back of it: letters were taken out of it; remove"
                    f" its entry from {self._marks_path()} to play back all that is in it"
                )
            stretch, torn = whole_lines(path, mark)
            if torn:
                remarks.append(f"{path} ends with {torn} bytes of half a letter, which are left there")
            if stretch.end > stretch.start:
                found.setdefault(path.stem.rsplit("-", 1)[0], []).append(stretch)
        return found, remarks

    def begin(self) -> Path:
        """Where the letters of a replay go until it is done; what a killed one left is removed."""
        for left in self._directory.glob(".replay-*"):
            if left.is_dir():
                shutil.rmtree(left)
        attempt = self._directory / f".replay-{self._last() + 1}"
        make_directory(attempt)
        return attempt

    def done(self, attempt: Path, played: Iterable[Stretch]) -> None:
        """All of these were played back, and `attempt` holds those that failed again."""
        marks = {**self._marks(), **{self._name(Path(one.path)): one.end for one in played}}
        with (attempt / _MARKS).open("wb") as file:
            file.write(msgspec.json.encode(marks))
            file.flush()
            os.fsync(file.fileno())
        sync_directory(attempt)
        attempt.rename(attempt.with_name(attempt.name.removeprefix(".")))
        sync_directory(self._directory)

    def _files(self) -> list[Path]:
        if not self.place.is_dir():
            return [self.place]
        return sorted([*self.place.glob("*-*.jsonl"), *self.place.glob("replay-*/*-*.jsonl")])

    def _marks(self) -> dict[str, int]:
        if not self._last():
            return {}
        path = self._marks_path()
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, int])
        except (FileNotFoundError, msgspec.DecodeError) as error:
            raise LetterError(f"{path}, which says what was played back, cannot be read: {error}") from None

    def _marks_path(self) -> Path:
        return self._directory / f"replay-{self._last()}" / _MARKS

    def _last(self) -> int:
        """The number of the last replay that was done, 0 if there was none."""
        numbers = [_DONE.fullmatch(path.name) for path in self._directory.glob("replay-*")]
        return max((int(found[1]) for found in numbers if found), default=0)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._directory))
