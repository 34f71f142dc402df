"""Bounds on replicas."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import FlowError, Parallelism, elastic
from penstock.flow.parallelism import fixed


def test_fixed_is_not_elastic() -> None:
    assert fixed(4) == Parallelism(4, 4, 4, 4)
    assert not fixed(4).elastic
    assert str(fixed(4)) == "4"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (elastic(1, 16), Parallelism(1, 16, 1, 8)),
        (elastic(1, 16, initial=4), Parallelism(1, 16, 4, 8)),
        (elastic(1, 16, initial=6), Parallelism(1, 16, 6, 12)),
        (elastic(1, 4), Parallelism(1, 4, 1, 4)),
        (elastic(2, 100, initial=60), Parallelism(2, 100, 60, 100)),
        (elastic(1, 16, initial=4, pool=4), Parallelism(1, 16, 4, 4)),
        (elastic(3, 3), fixed(3)),
    ],
)
def test_elastic_defaults(made: Parallelism, expected: Parallelism) -> None:
    assert made == expected


def test_defaults_are_noted_but_do_not_count_in_comparisons() -> None:
    assert elastic(1, 16).defaults == ("initial", "pool")
    assert elastic(1, 16, initial=1, pool=8).defaults == ()
    assert elastic(1, 16) == elastic(1, 16, initial=1, pool=8)
    assert str(elastic(1, 16)) == "elastic(1, 16, initial=1, pool=8)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: elastic(5, 2),
            "parallelism (min 5, max 2, initial 5, pool 2): min 5 is greater than max 2; swap the two bounds",
        ),
        (
            lambda: elastic(2, 4, initial=1),
            "parallelism (min 2, max 4, initial 1, pool 4): initial 1 is outside 2 to 4;"
            " choose it between the bounds",
        ),
        (
            lambda: elastic(1, 4, initial=9),
            "parallelism (min 1, max 4, initial 9, pool 4): initial 9 is outside 1 to 4;"
            " choose it between the bounds",
        ),
        (
            lambda: elastic(1, 4, initial=3, pool=2),
            "parallelism (min 1, max 4, initial 3, pool 2): pool 2 is outside 3 to 4;"
            " it must hold the initial replicas and at most max",
        ),
        (
            lambda: elastic(1, 4, pool=5),
            "parallelism (min 1, max 4, initial 1, pool 5): pool 5 is outside 1 to 4;"
            " it must hold the initial replicas and at most max",
        ),
        (
            lambda: elastic(0, 4, initial=1),
            "parallelism (min 0, max 4, initial 1, pool 4): min must be a whole number of at least 1, not 0",
        ),
        (
            lambda: elastic(0, 4),
            "elastic(...): the number of replicas to start with must be a whole number of at least 1, not 0",
        ),
        (
            lambda: elastic(1, 2.5),  # type: ignore[arg-type]
            "elastic(...): the highest number of replicas must be a whole number of at least 1, not 2.5",
        ),
        (
            lambda: fixed(True),
            "parallelism (min True, max True, initial True, pool True):"
            " min must be a whole number of at least 1, not True",
        ),
    ],
)
def test_refused(make: Callable[[], Parallelism], message: str) -> None:
    with pytest.raises(FlowError) as refused:
        make()
    assert str(refused.value) == message


@given(st.integers(1, 200), st.integers(0, 200), st.data())
def test_a_default_pool_always_fits(lowest: int, room: int, data: st.DataObject) -> None:
    highest = lowest + room
    initial = data.draw(st.integers(lowest, highest))
    made = elastic(lowest, highest, initial=initial)
    assert made.min <= made.initial <= made.pool <= made.max
    assert made.elastic == (room > 0)
