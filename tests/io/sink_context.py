"""A context as a worker gives it to a sink."""

from dataclasses import dataclass


@dataclass
class FakeContext:
    task: str = "sink"
    replica: int = 0
    batch: int = 0
    item_id: tuple[int, ...] | None = None
