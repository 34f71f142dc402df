"""Where the commits of a flow are kept: looked at before anything is started, refused in words.

A checkpoint is Spark's: `commits/N` says that batch N is committed, `offsets/N` where every split of every
source stood at its end. The addresses of Hadoop's file systems work (`file:`, `hdfs:`, `s3a:`).
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from penstock import processes
from penstock.epochs.batches import Positions, decode_positions
from penstock.flow.errors import FlowError
from penstock.spark.directory import Directory
from penstock.wire.orders import Position

_OWNER = ".penstock-owner"
_PREFIX = "penstock-checkpoint-"

Splits = Mapping[str, Mapping[str, Position]]
"""Positions by the name of the source, then by the name of the split."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a checkpoint knows: the last batch that was committed (-1: none) and where it ended."""

    batch: int = -1
    sources: Splits = field(default_factory=dict)

    @property
    def items(self) -> int:
        """How many items of all sources were read up to there."""
        return sum(position.ordinal for splits in self.sources.values() for position in splits.values())


def checkpoint_address(place: str | os.PathLike[str]) -> str:
    """An absolute path, or the address as it is if it names its file system."""
    text = os.fspath(place)
    return text if ":/" in text else str(Path(text).absolute())


def committed(spark: SparkSession, address: str) -> Committed:
    """What is committed there; the directory is made if there is none, and refused if it cannot be used."""
    directory = Directory(spark, address)
    directory.prepare()
    batches = [int(name) for name in directory.names("commits") if name.isdecimal()]
    if not batches:
        return Committed()
    last = max(batches)
    positions = _decoded(directory, f"offsets/{last}")
    return Committed(last, positions.sources)


def check_sources(flow: str, address: str, known: Splits, declared: Splits) -> None:
    """Refuse a flow that lacks what the checkpoint knows: its items would be lost without a word."""
    remedy = "or begin with a new checkpoint directory"
    for source, splits in known.items():
        if source not in declared:
            names = ", ".join(f'"{name}"' for name in declared)
            raise FlowError(
                f'the checkpoint {address} knows the source "{source}", which flow "{flow}" does not have'
                f" (it has {names}): give it back its name, {remedy}"
            )
        missing = [split for split in splits if split not in declared[source]]
        if missing:
            raise FlowError(
                f'the checkpoint {address} knows split "{missing[0]}" of source "{source}", which it does not'
                f' have in flow "{flow}" (it has {", ".join(declared[source])}): declare it so, {remedy}'
            )


def _decoded(directory: Directory, name: str) -> Positions:
    try:
        return decode_positions(directory.text(name))
    except ValueError as problem:
        raise FlowError(
            f"the checkpoint file {directory.address}/{name} cannot be used: {problem};"
            " restore it, or begin with a new checkpoint directory"
        ) from None


class TemporaryCheckpoint:
    """A checkpoint of a flow that cannot be resumed; it ends with the flow.

    A driver that is killed cannot remove its own, so the next one does: a file in it says whose it is.
    """

    def __init__(self) -> None:
        _remove_abandoned()
        self.address = tempfile.mkdtemp(prefix=_PREFIX)
        (Path(self.address) / _OWNER).write_text(processes.identity(os.getpid()) or "")

    def remove(self) -> None:
        """The flow is over."""
        shutil.rmtree(self.address, ignore_errors=True)


def owner_of(place: Path) -> str:
    """The process that made a temporary checkpoint (`processes.identity`); empty if that is not known."""
    with contextlib.suppress(OSError, ValueError):
        return (place / _OWNER).read_text()
    return ""


def _remove_abandoned() -> None:
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = owner_of(place)
        if owner and not processes.is_alive(owner):
            shutil.rmtree(place, ignore_errors=True)
