"""A sink of JSON-lines files in which every item stands once, whatever crashed and was replayed.

Spark replays what was not committed, and a replayed item has the id it had the first time: (origin, ordinal
in it, ...). A batch has the same number in a replay, and begins when the one before it is committed. So only
these ids can come again:
- Written by this process in the running batch: they are kept until the next one begins.
- Written before a restart, or by a worker that this one replaces: found again in the files. Beside each file
  stands a small one with its floor, the place before which all is surely committed: where the batch began
  that was flushed last. These ids may come again in any batch, because batches are cut anew in a replay; but
  batches are in the order of the ordinals, so a batch that reaches the highest ordinal found, in every
  origin, is the last in which one of them can come.

As long as an id found in a file can come again, the floor of that file stays where it is. An origin that has
ended sends nothing more: then the floor stays for the whole run, and the next start reads more of the file
than it must.

Where commits are epoch marks nothing that is committed comes again, and files appear when they are committed
(epoch_files.py). Then only ids are looked for that were written before, when commits were boundaries.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.io.epoch_files import EpochFiles, appear
from penstock.io.id_set import IdSet, ItemId, digest_of
from penstock.io.part_file import PartFile, part_path, part_paths, sync_directory
from penstock.io.protocol import SinkContext


class _Line(msgspec.Struct):
    id: ItemId


class _Found:
    """Ids found in files; `awaited` are their highest ordinals that no batch has reached yet, by origin."""

    def __init__(self, ids: Iterable[ItemId]) -> None:
        self.ids = IdSet()
        self.awaited: dict[int, int] = {}
        for item_id in ids:
            self.ids.add(digest_of(item_id))
            origin, ordinal, *_ = item_id
            self.awaited[origin] = max(ordinal, self.awaited.get(origin, 0))

    def reached(self, origin: int, ordinal: int) -> None:
        """The running batch has come to this ordinal."""
        if ordinal >= self.awaited.get(origin, ordinal + 1):
            del self.awaited[origin]


@dataclass
class DedupJsonl:
    """Writes `{"id": ..., "item": ...}` lines and drops an item whose id it has written already."""

    directory: Path
    by_id: bool = True
    _part: PartFile | None = field(init=False, default=None, repr=False)
    _context: SinkContext | None = field(init=False, default=None, repr=False)
    _batch: int | None = field(init=False, default=None, repr=False)
    _begin: int = field(init=False, default=0, repr=False)
    _floor: int = field(init=False, default=0, repr=False)
    _ids: IdSet = field(init=False, repr=False, compare=False)
    _own: _Found | None = field(init=False, default=None, repr=False)
    _found: list[_Found] = field(init=False, default_factory=list, repr=False)
    _epochs: EpochFiles | None = field(init=False, default=None, repr=False)

    def open(self, context: SinkContext) -> None:
        path = part_path(self.directory, context.replica)
        self._context = context
        if context.attempt is not None:
            self._epochs = EpochFiles(self.directory, context.task, context.replica, context.attempt)
            self._epochs.open()
            parts = part_paths(self.directory)
            found = _Found(item_id for part in parts for item_id in uncommitted_ids(part))
            self._found = [found] if found.awaited else []
            return
        self._part = PartFile.append_to(path)
        self._floor = read_floor(path)
        self._batch, self._ids = None, IdSet()
        # Replicas may have been more or fewer before, so that an id seen by another one can come here now.
        others = [part for part in sorted(self.directory.glob("part-*.jsonl")) if part != path]
        self._own = _Found(uncommitted_ids(path))
        seen_by_others = _Found(item_id for part in others for item_id in uncommitted_ids(part))
        self._found = [found for found in (self._own, seen_by_others) if found.awaited]

    def write(self, item: Any) -> None:
        assert self._context is not None, "a sink is opened before it is written to"
        item_id = self._context.item_id
        if item_id is None:
            raise ValueError("dedup_jsonl needs items with ids: declare the flow with ids=True")
        if self._epochs is not None:
            if not (self._found and self._was_found(item_id, digest_of(item_id))):
                self._epochs.write_line(_line(item_id, item))
            return
        assert self._part is not None, "a sink is opened before it is written to"
        self._move_to(self._context.batch, self._part.size)
        digest = digest_of(item_id)
        if self._was_found(item_id, digest) or digest in self._ids:
            return
        self._part.write_line(_line(item_id, item))
        self._ids.add(digest)

    def _was_found(self, item_id: ItemId, digest: bytes) -> bool:
        """Whether an item is in a file that was there at the start."""
        for found in self._found:
            found.reached(*item_id[:2])
        return any(digest in found.ids for found in self._found)

    def flush(self) -> None:
        """The batch is complete: its items go to the disk, and what was before it is surely committed."""
        if self._part is None or self._context is None:
            return
        self._move_to(self._context.batch, self._part.size)
        self._part.sync()
        if self._own not in self._found and self._begin > self._floor:
            self._floor = self._begin
            write_floor(self._part.path, self._floor)

    def prepare(self, epoch: int) -> str | None:
        """The file of an epoch is on the disk and hidden. Ids that it has reached do not come again."""
        assert self._epochs is not None, "a sink prepares where commits are epoch marks"
        self._found = [found for found in self._found if found.awaited]
        return self._epochs.prepare(epoch)

    def commit(self, description: str) -> None:
        """It appears."""
        appear(Path(description))

    def close(self) -> None:
        if self._epochs is not None:
            self._epochs.close()
            self._epochs = None
        if self._part is not None:
            self.flush()
            self._part.close()
            self._part = None

    def _move_to(self, batch: int, size_bytes: int) -> None:
        """Begin a new batch: what came in the one before does not come again."""
        if batch == self._batch:
            return
        self._batch, self._begin = batch, size_bytes
        self._ids = IdSet()
        self._found = [found for found in self._found if found.awaited]


def _line(item_id: ItemId, item: Any) -> bytes:
    return msgspec.json.encode({"id": item_id, "item": item})


def floor_path(part: Path) -> Path:
    """The small file beside a part file."""
    return part.with_suffix(".floor")


def read_floor(part: Path) -> int:
    """The byte of a part file before which all is committed; 0 is always right, if none is known."""
    try:
        return int(floor_path(part).read_text())
    except (FileNotFoundError, ValueError):
        return 0


def write_floor(part: Path, floor: int) -> None:
    """Replaced in one step, so that a crash, also of the host, leaves the old or the new one."""
    unfinished = part.with_suffix(".floor.part")
    with unfinished.open("w") as file:
        file.write(str(floor))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(floor_path(part))
    sync_directory(part.parent)


def uncommitted_ids(part: Path) -> Iterator[ItemId]:
    """Ids in a part file that may come again: those after its floor."""
    with part.open("rb") as lines:
        lines.seek(min(read_floor(part), os.fstat(lines.fileno()).st_size))
        for line in lines:
            if not line.endswith(b"\n"):
                return  # half a line of a killed process: its item was not taken and comes again
            yield msgspec.json.decode(line, type=_Line).id


def dedup_jsonl(path: str | Path) -> DedupJsonl:
    """A directory of JSON-lines files in which every item stands once. Needs `Flow(..., ids=True)`.

    Use one directory with one checkpoint: with a new one ids begin again, and may be dropped as seen.
    """
    return DedupJsonl(Path(path).resolve())
