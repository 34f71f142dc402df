"""How a flow is doing: its state, and one entry per second of what it has done."""

import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.observe.reported import Metrics

State = Literal["running", "restarting", "draining", "stopped", "failed"]

_EVERY_S = 1.0
_KEPT = 600


@dataclass(frozen=True, slots=True)
class Status:
    """What the flow is doing."""

    state: State
    message: str


class Progress:
    """The latest entries: time, batch, totals of each task, latency at each sink."""

    def __init__(self) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._next_s = time.monotonic()

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The oldest first."""
        return list(self._entries)

    @property
    def last(self) -> dict[str, Any] | None:
        """None in the very beginning."""
        return self._entries[-1] if self._entries else None

    def is_due(self) -> bool:
        """Whether it is time for an entry."""
        return time.monotonic() >= self._next_s

    def note(self, batch: int, metrics: Metrics) -> None:
        """Make an entry."""
        self._next_s += _EVERY_S
        self._entries.append(
            {
                "time_s": time.time(),
                "batch": batch,
                "restarts": metrics.restarts,
                "commits": None if metrics.commits is None else msgspec.to_builtins(metrics.commits),
                "tasks": {name: msgspec.to_builtins(task) for name, task in metrics.tasks.items()},
                "latency_ms": {
                    sink: {"count": sketch.count, "mean": sketch.mean, "p99": sketch.quantile(0.99)}
                    for sink, sketch in metrics.latency.items()
                },
            }
        )
