"""A context as a worker gives it to a sink."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class FakeContext:
    task: str = "sink"
    replica: int = 0
    batch: int = 0
    attempt: str | None = None
    prepared_in: Path | None = None
    item_id: tuple[int, ...] | None = None
    item_ids: list[tuple[int, ...] | None] | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    timestamp: int | None = None
    key: bytes | None = None
