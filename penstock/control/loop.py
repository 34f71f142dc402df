"""The controller: once per interval, observe, decide (guards included), apply, record.

It knows neither Spark nor the simulator, only the Engine port; the engine's `observe` is what waits for the
next interval. Guards wrap the policy, so the policy given here is guarded or not as its maker chose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.control.engine import Engine
    from penstock.control.recording import Recorder
    from penstock.policy.decision import Decision
    from penstock.policy.port import Policy
    from penstock.stats.snapshot import Snapshot

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Cycle:
    """One turn of the loop."""

    number: int
    at_s: float
    snapshot: Snapshot
    decision: Decision


class Controller(Generic[M]):
    """Drives one engine with one policy; `clock` says what time it is, in seconds, for the record."""

    def __init__(
        self, engine: Engine, policy: Policy[M], clock: Callable[[], float], recorder: Recorder | None = None
    ) -> None:
        self._engine = engine
        self._policy = policy
        self._clock = clock
        self._recorder = recorder
        self._memory = policy.initial_memory()
        self._number = 0

    def turn(self) -> Cycle | None:
        """One interval; None when the engine has nothing more to show."""
        snapshot = self._engine.observe()
        if snapshot is None:
            return None
        decision, self._memory = self._policy.decide(snapshot, self._memory)
        cycle = Cycle(self._number, self._clock(), snapshot, decision)
        if self._recorder is not None:
            self._recorder.write(cycle.number, cycle.at_s, snapshot, decision)
        self._engine.apply(decision)
        self._number += 1
        return cycle

    def cycles(self) -> Iterator[Cycle]:
        """Turn until the engine ends."""
        while (cycle := self.turn()) is not None:
            yield cycle
