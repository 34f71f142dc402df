"""The reference loop, with loops of a given length."""

import pytest

from penstock.bench.reference import FIRST_READINGS, LOOPS, Reference, loop_s


def readings(*loops_s: float) -> Reference:
    given = iter([1.0] * (FIRST_READINGS * LOOPS) + list(loops_s))
    return Reference(lambda: next(given))


def test_the_fastest_of_a_few_loops_counts() -> None:
    assert readings(1.2, 9.0, 1.1).slower() == pytest.approx(0.1)


def test_a_better_reading_is_the_best_from_then_on() -> None:
    reference = readings(0.5, 0.6, 0.7, 1.0, 1.0, 1.0)
    assert reference.slower() == 0
    assert reference.slower() == pytest.approx(1.0)


def test_the_loop_takes_time() -> None:
    assert loop_s() > 0
