"""The loop with a fake engine, a fake policy and a fake clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.loop import Controller
from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot, TaskStats

if TYPE_CHECKING:
    from collections.abc import Iterator


def snapshot(replicas: int) -> Snapshot:
    return Snapshot(
        interval_s=5.0,
        tasks={"work": TaskStats(kind="task", parallelism=replicas, min=1, max=9, elastic=True)},
    )


class FakeEngine:
    def __init__(self, replicas: list[int]) -> None:
        self._waiting: Iterator[Snapshot] = (snapshot(count) for count in replicas)
        self.applied: list[Decision] = []
        self.calls: list[str] = []

    def observe(self) -> Snapshot | None:
        self.calls.append("observe")
        return next(self._waiting, None)

    def apply(self, decision: Decision) -> None:
        self.calls.append("apply")
        self.applied.append(decision)

    def boundary(self) -> None:
        self.calls.append("boundary")


class NoParameters(msgspec.Struct, frozen=True):
    pass


class CountingPolicy:
    """Wants as many replicas as snapshots it has seen."""

    name = "counting"
    parameters = NoParameters()

    def initial_memory(self) -> int:
        return 0

    def decide(self, snapshot: Snapshot, memory: int) -> tuple[Decision, int]:
        wanted = memory + snapshot.tasks["work"].parallelism
        decision = Decision(
            policy=self.name,
            parallelism={"work": wanted},
            batch_lifetime_ms={},
            chains=[],
            feasible=True,
            reasons=[],
        )
        return decision, memory + 1


def test_each_turn_observes_decides_and_applies_once() -> None:
    engine = FakeEngine([1, 1])
    controller = Controller(engine, CountingPolicy(), clock=lambda: 7.0)
    cycle = controller.turn()
    assert cycle is not None
    assert (cycle.number, cycle.at_s) == (0, 7.0)
    assert engine.calls == ["observe", "boundary", "apply", "boundary"]


@given(st.lists(st.integers(1, 9), max_size=20))
def test_memory_is_carried_from_turn_to_turn_until_the_engine_ends(replicas: list[int]) -> None:
    engine = FakeEngine(replicas)
    times = iter(range(1000))
    controller = Controller(engine, CountingPolicy(), clock=lambda: float(next(times)), monotonic=lambda: 0.0)
    cycles = list(controller.cycles())
    assert [cycle.number for cycle in cycles] == list(range(len(replicas)))
    assert [cycle.at_s for cycle in cycles] == [float(n) for n in range(len(replicas))]
    wanted = [decision.parallelism["work"] for decision in engine.applied]
    assert wanted == [number + count for number, count in enumerate(replicas)]


def test_an_engine_that_has_ended_is_left_alone() -> None:
    engine = FakeEngine([])
    assert Controller(engine, CountingPolicy(), clock=lambda: 0.0).turn() is None
    assert engine.calls == ["observe"]
