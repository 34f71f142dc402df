"""Dead letters: items that a task could not process, one JSON document a line, one file for each replica.

A letter holds the item as text, for people, and as a pickle, to be played back (`input` is the stream by
which it came). A result that could not be sent on has no pickle: it is no item of its task.
"""

import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from penstock.flow.errors import FlowError
from penstock.flow.record import NO_METADATA, Metadata, Record
from penstock.io.protocol import SourceClock

SPLIT = "letters"


class LetterError(FlowError):
    """A letter cannot be read or played back; the message names the file and the place in it."""


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """One item that failed, and why."""

    task: str
    replica: int
    item: str
    error: str
    traceback: str
    input: str | None = None
    id: tuple[int, ...] | None = None
    pickle: bytes | None = None
    metadata: Metadata | None = None

    def load(self) -> Any:
        """The item itself; `LetterError` if it was no item of its task, or cannot be had again."""
        if self.pickle is None:
            raise LetterError(f'a dead letter of task "{self.task}" holds no item that could come again')
        return _item(self.pickle, f'task "{self.task}"')


def letters_path(directory: str, task: str, replica: int) -> Path:
    """Where a replica of a task writes its letters."""
    return Path(directory) / f"{task}-{replica}.jsonl"


def pickled(item: Any) -> bytes | None:
    """The item for the playback, None if it cannot be had."""
    try:
        return pickle.dumps(item, protocol=5)
    except Exception:  # noqa: BLE001 - a user's item may raise anything when pickled
        return None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a file of letters: bytes `start` to `end`, which are whole lines."""

    path: str
    start: int
    end: int

    def letters(self, at: int | None = None) -> Iterator[tuple[Letter, int]]:
        """The letters and the byte after each, from byte `at` on."""
        with Path(self.path).open("rb") as lines:
            at = self.start if at is None else at
            lines.seek(at)
            while at < self.end:
                line = lines.readline()
                try:
                    letter = msgspec.json.decode(line, type=Letter)
                except msgspec.DecodeError as error:
                    raise LetterError(f"{self.path}, byte {at}: this is no dead letter: {error}") from None
                at += len(line)
                yield letter, at


def whole_lines(path: Path, start: int) -> tuple[Stretch, int]:
    """The whole lines of a file from a byte on, and how many bytes of half a line are behind them."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(start)
        end = start
        for line in file:
            end += len(line) if line.endswith(b"\n") else 0
    return Stretch(str(path), start, end), size - end


class LettersOffset(TypedDict):
    """The stretch that is being read, and the byte in its file; None at its beginning."""

    stretch: int
    at: int | None


@dataclass(frozen=True, slots=True)
class Letters:
    """A source of the items that came to a task by one stream and failed there, as they came."""

    stretches: tuple[Stretch, ...]
    input: str
    name: str = "letters"

    @property
    def splits(self) -> tuple[str, ...]:
        return (SPLIT,)

    def start(self, split: str) -> LettersOffset:  # noqa: ARG002 - there is only one
        return LettersOffset(stretch=0, at=None)

    def open(self, split: str, offset: LettersOffset, clock: SourceClock) -> "LettersReader":  # noqa: ARG002 - not paced
        return LettersReader(self, offset)


@dataclass
class LettersReader:
    """Reads one letter after the other."""

    source: Letters
    offset: LettersOffset
    ids: list[tuple[int, ...] | None] = field(default_factory=list)
    """The ids of the items that were read last."""

    def read(self, limit: int, wait_s: float) -> tuple[list[Record[Any]], None] | None:  # noqa: ARG002 - never waits
        items: list[Record[Any]] = []
        self.ids = []
        while self.offset["stretch"] < len(self.source.stretches):
            stretch = self.source.stretches[self.offset["stretch"]]
            for letter, after in stretch.letters(self.offset["at"]):
                if letter.input == self.source.input and letter.pickle is not None:
                    item = _item(letter.pickle, f"{stretch.path}, before byte {after}")
                    known = letter.metadata or NO_METADATA
                    items.append(Record(item, known.headers, known.timestamp, known.key))
                    self.ids.append(letter.id)
                self.offset = LettersOffset(stretch=self.offset["stretch"], at=after)
                if len(items) == limit:
                    return items, None
            self.offset = LettersOffset(stretch=self.offset["stretch"] + 1, at=None)
        return (items, None) if items else None

    def close(self) -> None:
        """Nothing is held between two reads."""


def _item(data: bytes, where: str) -> Any:
    try:
        return pickle.loads(data)
    except Exception as error:  # unpickling imports and runs users' code
        raise LetterError(
            f"{where}: the item of this dead letter cannot be unpickled ({type(error).__name__}: {error});"
            " has its class changed?"
        ) from error
