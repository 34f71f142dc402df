"""A sink of JSON-lines files in which every item stands once, whatever crashed and was replayed.

Spark replays what was not committed, and a replayed item has the id it had the first time: (source partition,
ordinal in it, ...). So a sink must remember the ids since the last commit.
- Written by this process: when a batch begins, the one before the last is surely committed (the last one may
  still be on its way into the checkpoint), so ids of the current batch and of the two before it are kept.
- Written before a restart: found again in the files. Beside each file stands a small one with its floor, the
  place before which all is surely committed. These ids may come again in any batch, because batches are cut
  anew in a replay; but batches are in the order of the ordinals, so a batch that reaches the highest ordinal
  found, in every partition, is the last in which one of them can come.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.io.part_file import PartFile, part_path, sync_directory
from penstock.io.protocol import SinkContext

REMEMBERED_BATCHES = 2

ItemId = tuple[int, ...]


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
    _found: set[ItemId] = field(init=False, default_factory=set, repr=False)
    _awaited: dict[int, int] = field(init=False, default_factory=dict, repr=False)
    _begins: list[int] = field(init=False, default_factory=list, repr=False)
    _floor: int = field(init=False, default=0, repr=False)

    def open(self, context: SinkContext) -> None:
        path = part_path(self.directory, context.replica)
        self._context = context
        self._batch = context.batch
        self._part = PartFile.append_to(path)
        self._floor = read_floor(path)
        self._begins = []
        self._recent = [set()]
        # Replicas may have been more or fewer before, so that an id seen by another one can come here now.
        parts = sorted(self.directory.glob("part-*.jsonl"))
        self._found = {item_id for part in parts for item_id in uncommitted_ids(part)}
        self._awaited = {}
        for partition, ordinal, *_ in self._found:
            self._awaited[partition] = max(ordinal, self._awaited.get(partition, 0))

    def write(self, item: Any) -> None:
        assert self._part is not None, "a sink is opened before it is written to"
        assert self._context is not None, "a sink is opened before it is written to"
        item_id = self._context.item_id
        if item_id is None:
            raise ValueError("dedup_jsonl needs items with ids: declare the flow with ids=True")
        self._move_to(self._context.batch, self._part.size)
        if self._awaited:
            self._pass(*item_id[:2])
        if item_id in self._found or any(item_id in seen for seen in self._recent):
            return
        self._part.write_line(msgspec.json.encode({"id": item_id, "item": item}))
        self._recent[-1].add(item_id)

    def flush(self) -> None:
        """The batch is complete: note up to where the file is committed for sure."""
        if self._part is None or self._context is None:
            return
        self._move_to(self._context.batch, self._part.size)
        self._part.sync()
        # Two beginnings are known: of this batch and of the one before, the oldest that may be replayed.
        if not self._found and len(self._begins) == 2 and self._begins[0] > self._floor:
            self._floor = self._begins[0]
            write_floor(self._part.path, self._floor)

    def close(self) -> None:
        if self._part is not None:
            self.flush()
            self._part.close()
            self._part = None

    def _pass(self, partition: int, ordinal: int) -> None:
        if ordinal >= self._awaited.get(partition, ordinal + 1):
            del self._awaited[partition]

    def _move_to(self, batch: int, size_bytes: int) -> None:
        """Begin a new batch: a new set of ids, and no more of those that are too old to come again."""
        if batch == self._batch:
            return
        self._batch = batch
        if self._found and not self._awaited:
            # The batch that has ended was the last in which they could come: from now on they age with it.
            self._recent[-1] |= self._found
            self._found = set()
            self._begins = []
        self._recent = [*self._recent, set()][-(REMEMBERED_BATCHES + 1) :]
        self._begins = [*self._begins, size_bytes][-2:]


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
