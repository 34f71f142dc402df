"""What Spark has in a checkpoint on this machine: `commits/N`, and `offsets/N` with the positions of sources.

Spark needs the positions of the batch before its last one too. Beside each file may be its sum, `.N.crc`.
"""

import os
from pathlib import Path

import msgspec

from penstock.wire.orders import Position

POSITIONS_VERSION = 2
COMMITS, OFFSETS = "commits", "offsets"


class Positions(msgspec.Struct, frozen=True):
    """Where all splits stand, as `offsets/N` holds it."""

    version: int
    sources: dict[str, dict[str, Position]]


def decode_positions(text: str | None) -> Positions:
    """Spark's file: a line with its version, one of its own, then a line for each source of the query.

    A `ValueError` says what is wrong with it.
    """
    if text is None:
        raise ValueError("it is missing, though its batch is committed")
    lines = text.splitlines()
    if len(lines) < 3 or not lines[0].startswith("v"):
        raise ValueError("it is cut off")
    content = msgspec.json.decode(lines[2])
    if isinstance(content, dict) and "version" not in content:
        raise ValueError("its positions are of an older format, which this version does not read")
    positions = msgspec.convert(content, Positions)
    if positions.version != POSITIONS_VERSION:
        raise ValueError(f"its positions are of version {positions.version}, not {POSITIONS_VERSION}")
    return positions


def committed_batches(checkpoint: Path) -> list[int]:
    """In order."""
    return numbers(checkpoint / COMMITS)


def numbers(directory: Path) -> list[int]:
    """Of the batches that have a file there."""
    return sorted(int(file.name) for file in directory.glob("*") if file.name.isdecimal())


def positions_problem(checkpoint: Path, batch: int) -> str | None:
    """What is wrong with the positions at the end of a batch, in words; None if nothing is."""
    file = checkpoint / OFFSETS / str(batch)
    try:
        decode_positions(file.read_text() if file.exists() else None)
    except (ValueError, OSError) as problem:
        return f"{OFFSETS}/{batch} cannot be used: {problem}"
    return None


def files_of(directory: Path, batch: int) -> list[Path]:
    """That are there of a batch, with their sums."""
    return [file for file in (directory / str(batch), directory / f".{batch}.crc") if file.exists()]


def remove_later(checkpoint: Path, batch: int) -> None:
    """Commits first, the newest first of all: wherever this ends, the last commit is whole."""
    for kind in (COMMITS, OFFSETS):
        for later in reversed([number for number in numbers(checkpoint / kind) if number > batch]):
            _remove(checkpoint / kind, later)


def remove_earlier(checkpoint: Path, batch: int) -> list[str]:
    """Of batches before this one; the names of what is gone."""
    gone = []
    for kind in (COMMITS, OFFSETS):
        for earlier in [number for number in numbers(checkpoint / kind) if number < batch]:
            _remove(checkpoint / kind, earlier)
            gone.append(f"{kind}/{earlier}")
    return gone


def _remove(directory: Path, batch: int) -> None:
    for file in files_of(directory, batch):
        file.unlink()
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
