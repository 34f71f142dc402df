"""What replicas have borne counts for more than a model."""

from penstock.policy.penstock.proved import Proved


def proved(*intervals: tuple[float, bool]) -> Proved:
    known = Proved()
    for rate, held in intervals:
        known = known.then({"source": rate}, held=held, changed=False)
    return known


def test_what_was_held_for_some_intervals_is_borne() -> None:
    known = proved((100.0, True), (110.0, True), (90.0, True))
    assert known.bears({"source": 112.0})
    assert not known.bears({"source": 130.0})
    assert not known.bears({"source": 100.0, "other": 1.0})
    assert not proved((100.0, True), (110.0, True)).bears({"source": 100.0})


def test_one_miss_may_be_luck_and_two_are_not() -> None:
    held = [(100.0, True)] * 4
    assert proved(*held, (100.0, False)).bears({"source": 100.0})
    assert not proved(*held, (100.0, False), (100.0, False)).bears({"source": 100.0})


def test_other_replicas_have_borne_nothing() -> None:
    known = proved(*[(100.0, True)] * 5).then({"source": 100.0}, held=True, changed=True)
    assert known == Proved()
    assert not Proved().bears({"source": 1.0})
