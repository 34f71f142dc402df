"""The controller: once per interval, observe, decide (guards included), apply, record.

It knows neither Spark nor the simulator, only the Engine port; the engine's `observe` is what waits for the
next interval. Guards wrap the policy, so the policy given here is guarded or not as its maker chose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.control.decider import Decider
from penstock.control.decision_log import DecisionLog, observed_in
from penstock.control.settling import Settling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.control.engine import Effect, Engine
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
    effect: Effect | None = None


class Controller(Generic[M]):
    """Drives one engine with one policy.

    `clock` says what time it is for the record, in seconds since 1970. `monotonic` is the clock by which the
    engine tells when boundaries ended; without it both are the same, as in the simulator. As long as `asks`
    is False the policy is off: intervals are recorded, and nothing is decided about them.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy[M],
        clock: Callable[[], float],
        recorder: Recorder | None = None,
        *,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.log = DecisionLog(None if recorder is None else recorder.write_decision)
        self._engine = engine
        self._decider = Decider(policy)
        self._clock = clock
        self._monotonic = clock if monotonic is None else monotonic
        self._recorder = recorder
        self._number = 0 if recorder is None else recorder.first_number
        self._settling = Settling()
        self.asks = True

    @property
    def number(self) -> int:
        """Of the interval that has not ended yet."""
        return self._number

    def turn(self) -> Cycle | None:
        """One interval; None when the engine has nothing more to show."""
        snapshot = self._engine.observe()
        if snapshot is None:
            self.close()
            return None
        self.log.complete(observed_in(snapshot))
        self._settling.note(self._engine.boundary())
        stood_still_ms = self._settling.stood_still_ms(snapshot.interval_s, self._monotonic())
        number, at_s = self._number, self._clock()
        is_asked = self.asks
        if self._recorder is not None:
            self._recorder.write_snapshot(
                snapshot, at_s=at_s, stood_still_ms=stood_still_ms, is_asked=is_asked
            )
        decision = self._decider.decide(snapshot, stood_still_ms, is_asked=is_asked)
        self._number += 1
        self.log.decided(number, at_s, decision)
        effect = self._engine.apply(decision)
        self.log.took_effect(effect)
        self._settling.note(self._engine.boundary())
        return Cycle(number, at_s, snapshot, decision, effect)

    def cycles(self) -> Iterator[Cycle]:
        """Turn until the engine ends."""
        while (cycle := self.turn()) is not None:
            yield cycle

    def close(self) -> None:
        """Nothing more will be observed: the last decision is recorded as it is."""
        self.log.complete(None)
