"""Values that are attributes while an item is at work, against state that is always asked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock import state
from penstock.epochs.portions import Portion
from penstock.epochs.state import NotOwnedError
from penstock.state import StateError, declared
from penstock.wire.keys import KEY_GROUPS, key_group
from penstock.worker.context import Context
from penstock.worker.outbox import Outbox
from penstock.worker.state_store import Stateful, StateStore, store_of


class Items:
    splits = ("all",)


ITEMS: Any = Items()


class Work:
    """Does what items say: (key, what, value)."""

    count = state.value(0)
    last: Any = state.value(None)
    pair = state.value((0, 0))
    many = state.list_of(int)

    def process(self, item: tuple[str, str, Any], out: Any) -> None:
        _, what, value = item
        if what == "count":
            self.count += value
        elif what == "last":
            self.last = value
        elif what == "append" and isinstance(self.last, list):
            self.last.append(value)
        elif what == "many":
            self.many.append(value)
        elif what == "forget":
            del self.count
            out(("forgotten", self.count))
            self.count += value
        out((self.count, self.last, self.pair, [*self.many]))


class Outside(Work):
    def timer(self, out: Any) -> None:
        self.count = 3


def key_of(item: tuple[str, str, Any]) -> str:
    return item[0]


def store(body: Any, **options: Any) -> tuple[StateStore, Stateful]:
    flow = penstock.Flow("hand")
    flow.source(ITEMS, name="items").by_key(key_of).task(Work, name="work", **options).sink(print)
    made = flow.graph()
    context = Context("hand", "work", 0, Outbox(lambda _: None, 0, with_ids=False))
    context.input = "items->work"
    found = store_of(made, made.task("work"), context, lambda: 0, ahead_ns=0)
    assert found is not None
    return found, found.bind(body)


FIRST: dict[str, Any] = {"count": 0, "last": None, "pair": (0, 0), "many": []}


def known(portions: list[Portion]) -> dict[tuple[str, Any], Any]:
    """What files have, but for what is there if nothing is."""
    read, _ = store(Work())
    read.apply(portions)
    return {
        (name, key): value
        for name, cells in read._states.items()
        for key, value in cells.items()
        if value != FIRST[name]
    }


steps = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["count", "last", "append", "many", "forget", "nothing"]),
        st.integers(0, 2) | st.lists(st.integers(), max_size=1) | st.none(),
    ).filter(lambda step: isinstance(step[2], int) or step[1] in ("last", "nothing")),
    max_size=30,
)


@given(steps)
def test_it_makes_no_difference(items: list[tuple[str, str, Any]]) -> None:
    """A task that goes on when an item fails has nothing at hand: all is read from the state."""
    quick, slow = store(Work()), store(Work(), on_error="skip")
    assert (len(quick[0]._at_hand), slow[0]._at_hand) == (3, ())
    written: tuple[list[Portion], list[Portion]] = ([], [])
    for number, item in enumerate(items):
        sent: tuple[list[Any], list[Any]] = ([], [])
        for (_, work), out in zip((quick, slow), sent, strict=True):
            value = [*item[2]] if isinstance(item[2], list) else item[2]
            work.process((item[0], item[1], value), out.append)
        assert sent[0] == sent[1]
        if number % 5 == 4:
            for (one, _), files in zip((quick, slow), written, strict=True):
                files += one.take_changes()
            assert known(written[0]) == known(written[1])
    assert known(quick[0].everything()) == known(slow[0].everything())


def test_what_only_came_by_is_not_kept() -> None:
    kept, work = store(Work())
    work.process(("a", "nothing", None), lambda _: None)
    assert all([*kept._states[name].items()] == [] for name in ("count", "last", "pair"))


def test_a_task_is_what_it_was() -> None:
    body = Work()
    kept, _ = store(body)
    assert isinstance(body, Work)
    assert (type(body).__name__, type(body).__module__) == ("Work", __name__)
    assert {part.name for part in declared(body)} == {part.name for part in declared(Work)}
    again, work = store(body)  # bound a second time, as where a flow is tried twice in one process
    work.process(("a", "count", 2), lambda _: None)
    assert known(again.everything()) == {("count", "a"): 2}
    assert known(kept.everything()) == {}
    slow, work = store(body, on_error="skip")
    work.process(("a", "count", 3), lambda _: None)
    assert known(slow.everything()) == {("count", "a"): 3}


class Last(Work):
    def __init_subclass__(cls) -> None:
        raise ValueError("nobody inherits")


def test_a_class_that_nobody_may_inherit_has_its_state_all_the_same() -> None:
    kept, work = store(Last())
    work.process(("a", "count", 2), lambda _: None)
    assert kept._at_hand == ()
    assert known(kept.everything()) == {("count", "a"): 2}


def test_what_is_set_where_no_item_is_at_work_is_refused() -> None:
    body = Outside()
    kept, work = store(body)
    work.process(("a", "count", 2), lambda _: None)
    words = 'task "work": "count" was set where no item is at work'
    with pytest.raises(StateError, match=words), kept.between_items():
        body.timer(None)
    with pytest.raises(StateError, match="no item is at work here"), kept.between_items():
        print(body.count)
    assert known(kept.everything()) == {("count", "a"): 2}


def test_an_item_of_a_key_of_another_replica_is_refused() -> None:
    kept, work = store(Work())
    kept.own_only([group for group in range(KEY_GROUPS) if group != key_group("a")])
    with pytest.raises(NotOwnedError, match="key 'a' is of group"):
        work.process(("a", "count", 1), lambda _: None)
    work.process(("b", "count", 1), lambda _: None)
