"""What replicas have borne counts for more than a model."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.penstock.proved import Proved

SHARE = 0.99


def proved(*intervals: tuple[float, bool]) -> Proved:
    known = Proved()
    for rate, held in intervals:
        known = known.then({"source": rate}, held=held)
    return known


def test_what_was_held_for_some_intervals_is_borne() -> None:
    known = proved((100.0, True), (110.0, True), (90.0, True))
    assert known.borne({"source": 112.0}, SHARE)
    assert not known.borne({"source": 130.0}, SHARE)
    assert not known.borne({"source": 100.0, "other": 1.0}, SHARE)
    assert not proved((100.0, True), (110.0, True)).borne({"source": 100.0}, SHARE)


def test_as_many_misses_as_the_share_allows_may_be_luck() -> None:
    few, many = [(100.0, True)] * 4, [(100.0, True)] * 22
    missed = (100.0, False)
    assert proved(*few, missed).borne({"source": 100.0}, SHARE)
    assert not proved(*few, missed, missed).borne({"source": 100.0}, SHARE)
    assert proved(*few, missed, missed).borne({"source": 100.0}, 0.9)
    assert proved(*many, missed, missed).borne({"source": 100.0}, SHARE)
    assert not proved(*many, missed, missed, missed).borne({"source": 100.0}, SHARE)


@given(st.lists(st.booleans(), max_size=70), st.floats(0.5, 0.999), st.floats(0.5, 0.999))
def test_a_lower_share_and_fewer_misses_are_never_harder_to_bear(
    held: list[bool], one: float, other: float
) -> None:
    known = proved(*((100.0, each) for each in held))
    low, high = sorted((one, other))
    if known.borne({"source": 100.0}, high):
        assert known.borne({"source": 100.0}, low)
        assert proved(*((100.0, True) for _ in held)).borne({"source": 100.0}, high)


def test_what_was_borne_of_the_most_is_not_forgotten_while_less_comes() -> None:
    high, low = [(240.0, True)] * 12, [(30.0, True)] * 100
    assert proved(*high, *low).borne({"source": 240.0}, SHARE) == 12
    assert proved(*low, *high).borne({"source": 240.0}, SHARE) == 60
    missed = [(240.0, index % 2 == 0) for index in range(12)]
    assert not proved(*missed, *low).borne({"source": 240.0}, SHARE)
    assert proved(*missed, *low).borne({"source": 30.0}, SHARE)


def test_fewer_replicas_have_borne_nothing() -> None:
    known = proved(*[(100.0, True)] * 5)
    assert known.changed({"a": 2, "b": 3}, {"a": 1, "b": 4}) == Proved()
    assert not Proved().borne({"source": 1.0}, SHARE)


def test_more_replicas_bear_what_fewer_did_and_have_missed_nothing_yet() -> None:
    known = proved(*[(100.0, True), (100.0, False)] * 5).changed({"a": 1, "b": 3}, {"a": 2, "b": 3})
    assert known == proved(*[(100.0, True)] * 5)
