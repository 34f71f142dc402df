"""The cheapest numbers of replicas that are still good, from numbers that are.

What is good stays good with more replicas (nearly: luck and shared cores make exceptions), so each task is
lowered in jumps that double while they succeed and halve when they fail, which ends where one replica less
is too few. What one task lacks another can give: at the end one more of one against two less of another is
tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Vector = tuple[int, ...]
"""Replicas of the elastic tasks of a flow, in its order."""


class Tried(Protocol):
    """What came of numbers of replicas."""

    @property
    def vector(self) -> Vector: ...


T = TypeVar("T", bound=Tried)


def with_replicas(vector: Vector, task: int, replicas: int) -> Vector:
    """The vector with another number for one task."""
    return (*vector[:task], replicas, *vector[task + 1 :])


def cheapest(
    start: T,
    attempt: Callable[[Vector], T],
    *,
    good: Callable[[T], bool],
    lowest: Callable[[T], Sequence[int]],
    highest: Sequence[int],
) -> T:
    """From `start`, which is good. `lowest` says below which numbers nothing can be good."""
    best = _lowered(start, attempt, good, lowest)
    while (better := _exchanged(best, attempt, good, lowest, highest)) is not None:
        best = _lowered(better, attempt, good, lowest)
    return best


def _lowered(
    start: T, attempt: Callable[[Vector], T], good: Callable[[T], bool], lowest: Callable[[T], Sequence[int]]
) -> T:
    best, before = start, None
    while before != best.vector:
        before = best.vector
        for task in sorted(range(len(before)), key=lambda task: -best.vector[task]):
            best = _lowered_task(best, task, attempt, good, lowest(best)[task])
    return best


def _lowered_task(
    best: T, task: int, attempt: Callable[[Vector], T], good: Callable[[T], bool], floor: int
) -> T:
    jump = 1
    while jump and best.vector[task] > floor:
        tried = attempt(with_replicas(best.vector, task, max(floor, best.vector[task] - jump)))
        if good(tried):
            best, jump = tried, 2 * jump
        else:
            jump //= 2
    return best


def _exchanged(
    best: T,
    attempt: Callable[[Vector], T],
    good: Callable[[T], bool],
    lowest: Callable[[T], Sequence[int]],
    highest: Sequence[int],
) -> T | None:
    vector, floor = best.vector, lowest(best)
    for more in range(len(vector)):
        for less in range(len(vector)):
            if more != less and vector[more] < highest[more] and vector[less] - 2 >= floor[less]:
                other = with_replicas(vector, more, vector[more] + 1)
                tried = attempt(with_replicas(other, less, vector[less] - 2))
                if good(tried):
                    return tried
    return None
