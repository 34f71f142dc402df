"""A sink of JSON-lines files in which every item stands once, whatever crashed and was replayed.

Spark replays at most the batch that was not committed, and a replayed item has the id it had the first time.
So a sink must remember the ids since the last commit. It keeps those of the current batch and of the two
before it (the sink is flushed before the checkpoint is written, so the last one may come again; one more is
in reserve), and finds them again in its files after a restart: beside each file stands a small one that says
where in it each of the last batches ended.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.io.part_file import PartFile, part_path
from penstock.io.protocol import SinkContext

REMEMBERED_BATCHES = 2
KEPT_MARKS = REMEMBERED_BATCHES + 2

ItemId = tuple[int, ...]


class Mark(msgspec.Struct, frozen=True):
    """At the end of `batch` the part file was `size_bytes` long."""

    batch: int
    size_bytes: int


class _Line(msgspec.Struct):
    id: ItemId


@dataclass
class DedupJsonl:
    """Writes `{"id": ..., "item": ...}` lines and drops an item whose id it has written already."""

    directory: Path
    by_id: bool = True
    _part: PartFile | None = field(init=False, default=None, repr=False)
    _context: SinkContext | None = field(init=False, default=None, repr=False)
    _batch: int = field(init=False, default=-1, repr=False)
    _recent: list[set[ItemId]] = field(init=False, default_factory=list, repr=False)
    _marks: list[Mark] = field(init=False, default_factory=list, repr=False)

    def open(self, context: SinkContext) -> None:
        self._context = context
        self._batch = context.batch
        path = part_path(self.directory, context.replica)
        self._part = PartFile.append_to(path)
        self._marks = read_marks(path)
        # Replicas may have been more or fewer before, so that an id seen by another one can come here now.
        seen: set[ItemId] = set()
        for other in sorted(self.directory.glob("part-*.jsonl")):
            seen.update(recent_ids(other, context.batch))
        self._recent = [seen]

    def write(self, item: Any) -> None:
        assert self._part is not None, "a sink is opened before it is written to"
        assert self._context is not None, "a sink is opened before it is written to"
        item_id = self._context.item_id
        if item_id is None:
            raise ValueError("dedup_jsonl needs items with ids: declare the flow with ids=True")
        self._move_to(self._context.batch)
        if any(item_id in seen for seen in self._recent):
            return
        self._part.write_line(msgspec.json.encode({"id": item_id, "item": item}))
        self._recent[-1].add(item_id)

    def flush(self) -> None:
        """The batch is complete: remember where it ends in the file."""
        assert self._part is not None, "a sink is opened before it is flushed"
        assert self._context is not None, "a sink is opened before it is flushed"
        self._move_to(self._context.batch)
        if self._marks and self._marks[-1].size_bytes == self._part.size:
            return
        earlier = [mark for mark in self._marks if mark.batch < self._batch]
        self._marks = [*earlier, Mark(self._batch, self._part.size)][-KEPT_MARKS:]
        write_marks(self._part.path, self._marks)

    def close(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None

    def _move_to(self, batch: int) -> None:
        """Begin a set of ids for a new batch and forget those that are too old to come again."""
        if batch != self._batch:
            self._batch = batch
            self._recent = [*self._recent, set()][-(REMEMBERED_BATCHES + 1) :]


def marks_path(part: Path) -> Path:
    """The small file beside a part file."""
    return part.with_suffix(".marks")


def read_marks(part: Path) -> list[Mark]:
    """Where the last batches end in a part file; none if that is not known."""
    try:
        return msgspec.json.decode(marks_path(part).read_bytes(), type=list[Mark])
    except (FileNotFoundError, msgspec.DecodeError):
        return []


def write_marks(part: Path, marks: list[Mark]) -> None:
    """Replace the marks in one step, so that a crash leaves the old or the new ones."""
    unfinished = part.with_suffix(".marks.part")
    unfinished.write_bytes(msgspec.json.encode(marks))
    unfinished.replace(marks_path(part))


def recent_ids(part: Path, batch: int) -> Iterator[ItemId]:
    """Ids in a part file that may come again in `batch`: those after the batches too old to matter."""
    old = [mark.size_bytes for mark in read_marks(part) if mark.batch < batch - REMEMBERED_BATCHES]
    with part.open("rb") as lines:
        lines.seek(min(max(old, default=0), os.fstat(lines.fileno()).st_size))
        for line in lines:
            if not line.endswith(b"\n"):
                return  # half a line of a killed process: its item was not taken and comes again
            yield msgspec.json.decode(line, type=_Line).id


def dedup_jsonl(path: str | Path) -> DedupJsonl:
    """A directory of JSON-lines files in which every item stands once. Needs `Flow(..., ids=True)`.

    Use one directory with one checkpoint: with a new one ids begin again, and would be dropped as seen.
    """
    return DedupJsonl(Path(path).resolve())
