"""Who holds how many of Spark's task slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.flow.errors import FlowError
from penstock.spark.slots import Claim, SlotBook

NEEDS = 'flow "third" needs 2 for source, 2 for sink'


def test_a_refusal_says_who_has_them() -> None:
    book = SlotBook()
    book.claim("r1", "first", 3, 10, "unused")
    book.claim("r2", "second", 4, 10, "unused")
    with pytest.raises(FlowError) as refused:
        book.claim("r3", "third", 4, 10, NEEDS)
    assert str(refused.value) == (
        'flow "third" needs 2 for source, 2 for sink: 4 task slots at the same time, but of Spark\'s 10 there'
        ' are 7 held (3 by flow "first", 4 by flow "second"); start Spark with room for all flows before the'
        " first, penstock.session(slots=11), or run this one in a process of its own"
    )
    assert book.others("r3") == 7, "a flow that was refused holds nothing"
    book.claim("r3", "third", 3, 10, NEEDS)


def test_all_that_nobody_else_holds_is_free_to_take() -> None:
    book = SlotBook()
    first = book.claim("r1", "first", 3, 10, NEEDS)
    second = book.claim("r2", "second", 4, 10, NEEDS)
    assert (first.most, second.most) == (6, 7)
    first.hold(5)
    assert (first.most, second.most) == (6, 5)
    second.free()
    assert first.most == 10


def test_a_flow_may_be_freed_twice_and_its_name_used_again() -> None:
    """Two runs may have the same flow: what counts is the run."""
    book = SlotBook()
    claims = [book.claim(run, "same", 2, 10, NEEDS) for run in ("r1", "r2")]
    assert [claim.most for claim in claims] == [8, 8]
    for _ in range(2):
        claims[0].free()
    assert claims[1].most == 10


@given(st.integers(1, 20), st.integers(1, 20))
def test_the_first_flow_may_have_all(slots: int, all_slots: int) -> None:
    book = SlotBook()
    if slots > all_slots:
        with pytest.raises(FlowError):
            book.claim("r1", "first", slots, all_slots, NEEDS)
    else:
        assert book.claim("r1", "first", slots, all_slots, NEEDS).most == all_slots


class Sharing(RuleBasedStateMachine):
    """However flows come, grow, shrink and go, together they never hold more than there is."""

    all_slots = 12

    def __init__(self) -> None:
        super().__init__()
        self.book = SlotBook()
        self.claims: dict[str, Claim] = {}
        self.held: dict[str, int] = {}
        self.runs = 0

    @rule(slots=st.integers(1, 8))
    def come(self, slots: int) -> None:
        self.runs += 1
        run = f"r{self.runs}"
        if sum(self.held.values()) + slots > self.all_slots:
            with pytest.raises(FlowError):
                self.book.claim(run, run, slots, self.all_slots, NEEDS)
        else:
            self.claims[run] = self.book.claim(run, run, slots, self.all_slots, NEEDS)
            self.held[run] = slots

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(sorted(self.claims)))
        self.held[run] = data.draw(st.integers(1, self.claims[run].most))
        self.claims[run].hold(self.held[run])

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(sorted(self.claims)))
        self.claims.pop(run).free()
        del self.held[run]

    @invariant()
    def nobody_takes_what_others_hold(self) -> None:
        assert sum(self.held.values()) <= self.all_slots
        for run, claim in self.claims.items():
            assert claim.most == self.all_slots - sum(self.held.values()) + self.held[run]


TestSharing = Sharing.TestCase
