"""A source that does not wait for a flow that is being restarted, and what was due from it.

A paced source goes on where it was when a flow is started again. People do not stop tweeting meanwhile: here
item k is due at one moment for ever, `begin_ns` + T(k), and what became due while nobody read is late.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from penstock.control.engine import Boundary, Effect, Engine
from penstock.io.paced import Paced, PacedReader
from penstock.io.protocol import SourceClock
from penstock.io.schedule import NS_PER_S
from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot


@dataclass(frozen=True)
class OnWallClock(Paced[Any]):
    """A paced source whose items are due from `begin_ns` (CLOCK_MONOTONIC) on, however often it is opened."""

    begin_ns: int = 0

    def open(self, split: str, offset: int, clock: SourceClock) -> PacedReader[Any]:
        return super().open(split, offset, replace(clock, run_start_ns=self.begin_ns, run_offset=0))

    def items_due(self, now_ns: int) -> float:
        """How many were due by then."""
        return self.schedule.items_by((now_ns - self.begin_ns) / NS_PER_S)


def on_wall_clock(paced: Paced[Any], begin_ns: int) -> OnWallClock:
    """The same items, due from that moment on."""
    return OnWallClock(
        **{field.name: getattr(paced, field.name) for field in fields(Paced)}, begin_ns=begin_ns
    )


class DueRates:
    """An engine whose snapshots say what was due from the source, whether it was sent or not."""

    def __init__(
        self,
        engine: Engine,
        source: OnWallClock,
        task: str = "source",
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._engine = engine
        self._source = source
        self._task = task
        self._clock_ns = clock_ns
        self._due = source.items_due(clock_ns())

    def observe(self) -> Snapshot | None:
        snapshot = self._engine.observe()
        if snapshot is None:
            return None
        before, self._due = self._due, self._source.items_due(self._clock_ns())
        rate = (self._due - before) / snapshot.interval_s
        source = msgspec.structs.replace(snapshot.tasks[self._task], rate_total=rate)
        return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, self._task: source})

    def apply(self, decision: Decision) -> Effect | None:
        return self._engine.apply(decision)

    def boundary(self) -> Boundary | None:
        return self._engine.boundary()
