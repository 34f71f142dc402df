"""Files read as a stream, as fast as the flow takes them."""

import glob
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypedDict, TypeVar, overload

import msgspec

from penstock.io.protocol import SourceClock
from penstock.io.splits import numbered_splits, split_number

Format = Literal["text", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("text", "jsonl", "parquet")
Item = TypeVar("Item")
Records = Generator[tuple[Any, int], None, None]


class ReplayError(ValueError):
    """Files to replay are missing, of another format, or not those of the checkpoint."""


class ReplayOffset(TypedDict):
    """How often all files were read, the file (index in the partition, name) and the byte or row in it."""

    round: int
    file: int
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Replay(Generic[Item]):
    """File i of all, sorted by name, belongs to partition i mod partitions and is read in that order."""

    files: tuple[str, ...]
    format: Format
    partitions: int
    loop: bool
    name: str = "replay"

    def files_of(self, partition: int) -> tuple[str, ...]:
        return self.files[partition :: self.partitions]

    @property
    def splits(self) -> tuple[str, ...]:
        return numbered_splits(self.partitions)

    @property
    def endless(self) -> bool:
        """Whether it goes on for ever."""
        return self.loop

    def start(self, split: str) -> ReplayOffset:
        files = self.files_of(split_number(split))
        return ReplayOffset(round=0, file=0, name=files[0] if files else "", at=0)

    def open(self, split: str, offset: ReplayOffset, clock: SourceClock) -> "ReplayReader[Item]":  # noqa: ARG002 - not paced
        return ReplayReader(self.files_of(split_number(split)), self.format, offset, loops=self.loop)


@dataclass
class ReplayReader(Generic[Item]):
    """Walks through the files of one partition."""

    files: tuple[str, ...]
    format: Format
    offset: ReplayOffset
    loops: bool
    _records: Records | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        place, name = self.offset["file"], self.offset["name"]
        if place < len(self.files) and self.files[place] != name:
            raise ReplayError(
                f"the checkpoint was reading {name!r} as file {place} of this partition, but that is "
                f"{self.files[place]!r} now; "
                "replay the same files with the same number of partitions, or begin with a new checkpoint"
            )

    def read(self, limit: int, wait_s: float) -> tuple[list[Item], None] | None:  # noqa: ARG002 - never waits
        items: list[Item] = []
        empty_files = 0
        while self.offset["file"] < len(self.files) and empty_files <= len(self.files):
            before = len(items)
            try:
                self._take(items, limit)
            except ReplayError:
                self.close()
                if not items:
                    raise
                return items, None  # what was read first; reading on raises again
            if len(items) == limit:
                break
            # Counted, because a loop over files that are all empty would never end.
            empty_files = 0 if len(items) > before else empty_files + 1
            self._next_file()
        return (items, None) if items else None

    def _take(self, items: list[Item], limit: int) -> None:
        """Append records of the current file, until there are `limit` items or no more records."""
        if self._records is None:
            self._records = self._open()
        for item, after in self._records:
            items.append(item)
            self.offset = {**self.offset, "at": after}
            if len(items) == limit:
                return

    def close(self) -> None:
        if self._records is not None:
            self._records.close()
            self._records = None

    def _next_file(self) -> None:
        self.close()
        place, rounds = self.offset["file"] + 1, self.offset["round"]
        if place == len(self.files) and self.loops:
            place, rounds = 0, rounds + 1
        name = self.files[place] if place < len(self.files) else ""
        self.offset = ReplayOffset(round=rounds, file=place, name=name, at=0)

    def _open(self) -> Records:
        path, at = Path(self.offset["name"]), self.offset["at"]
        if self.format == "parquet":
            return _rows(path, at)
        return _lines(path, at) if self.format == "text" else _documents(path, at)


def _raw_lines(path: Path, at: int) -> Generator[tuple[bytes, int], None, None]:
    with path.open("rb") as lines:
        lines.seek(at)
        for line in lines:
            at += len(line)
            yield line, at


def _lines(path: Path, at: int) -> Records:
    """Lines without their end, and the byte position after each."""
    for line, after in _raw_lines(path, at):
        yield line.decode("utf-8", errors="replace").rstrip("\r\n"), after


def _documents(path: Path, at: int) -> Records:
    """JSON documents, one a line, and the byte position after each; empty lines are passed over."""
    for line, after in _raw_lines(path, at):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line), after
        except msgspec.DecodeError as error:
            begin = after - len(line)
            raise ReplayError(f"{path}, byte {begin}: not a JSON document: {error}") from None


def _rows(path: Path, at: int) -> Records:
    """Rows as dicts, and the number of rows up to each; row groups before `at` are not read."""
    with _parquet().ParquetFile(path) as file:
        seen = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if seen + size > at:
                rows = file.read_row_group(group).to_pylist()
                for row in rows[max(0, at - seen) :]:
                    at += 1
                    yield row, at
            seen += size


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ReplayError("replay of Parquet files needs pyarrow: install penstock[arrow]") from None
    return pyarrow.parquet


@overload
def replay(
    path: str | Path,
    format: Literal["text"] = ...,
    partitions: int = ...,
    *,
    loop: bool = ...,
) -> Replay[str]: ...


@overload
def replay(
    path: str | Path,
    format: Literal["parquet"],
    partitions: int = ...,
    *,
    loop: bool = ...,
) -> Replay[dict[str, Any]]: ...


@overload
def replay(
    path: str | Path,
    format: Format,
    partitions: int = ...,
    *,
    loop: bool = ...,
) -> Replay[Any]: ...


def replay(
    path: str | Path,
    format: Format = "text",  # noqa: A002 - the word users know from Spark
    partitions: int = 1,
    *,
    loop: bool = False,
) -> Replay[Any]:
    """The lines, JSON documents or Parquet rows of one file, a directory of files, or what a pattern matches.

    The list of files is made now. With `loop` it begins again after the last file, for ever.
    """
    if format not in FORMATS:
        raise ReplayError(f"replay knows the formats {', '.join(FORMATS)}, not {format!r}")
    if format == "parquet":
        _parquet()
    if partitions < 1:
        raise ReplayError(f"replay needs at least 1 partition, not {partitions!r}")
    here = Path(path)
    if here.is_dir():
        found = [
            str(entry)
            for entry in here.iterdir()
            if entry.is_file() and not entry.name.startswith((".", "_"))
        ]
    else:
        found = [
            name
            for name in glob.glob(str(path), recursive=True)  # noqa: PTH207 - absolute patterns
            if Path(name).is_file()
        ]
    if not found:
        raise ReplayError(f"no file to replay: nothing matches {str(path)!r}")
    return Replay(tuple(sorted(str(Path(name).resolve()) for name in found)), format, partitions, loop)
