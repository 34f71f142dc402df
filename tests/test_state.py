"""What a class declares to keep, without a flow."""

import operator
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import state
from penstock.state import PerReplica, Spec, StateError, declared


class Visits:
    user = state.key(str)
    count = state.value(0)
    tags: state.Cell[set[str]] = state.new(set)
    pages = state.list_of(str, ttl="1 h")
    by_page = state.map_of(str, int)
    silence = state.timer()

    def process(self, page: str, out: Any) -> None:
        self.count += 1
        self.pages.append(page)
        self.by_page[page] = self.by_page.get(page, 0) + 1
        self.silence.set("30 s")
        out(self.count)

    @silence.fires
    def end(self, out: Any) -> None:
        out(self.pages)
        del self.count


def test_an_object_that_no_flow_runs_has_the_state_of_one_key() -> None:
    visits, other, sent = Visits(), Visits(), list[Any]()
    visits.process("a", sent.append)
    visits.process("b", sent.append)
    was_set = visits.silence.is_set
    visits.end(sent.append)
    visits.silence.cancel()
    assert sent == [1, 2, ["a", "b"]]
    assert (visits.count, visits.by_page, visits.tags) == (0, {"a": 1, "b": 1}, set())
    assert f"{visits.user}" == "None"
    assert (was_set, visits.silence.is_set) == (True, False)
    assert (other.count, other.pages) == (0, [])


def test_a_value_that_can_be_changed_in_place_is_of_one_object_only() -> None:
    class Kept:
        seen = state.value([0])

    one, other = Kept(), Kept()
    one.seen.append(1)
    assert (one.seen, other.seen) == ([0, 1], [0])


def test_what_is_declared_is_known() -> None:
    class More(Visits):
        count = state.value(1, ttl="1 s")
        total = state.per_replica(0, merge=operator.add)

    found = [part.spec() for part in declared(cloudpickle.loads(cloudpickle.dumps(More)))]
    assert [spec for spec in found if spec is not None] == [
        Spec("tags", "value"),
        Spec("pages", "list", 3_600_000.0),
        Spec("by_page", "map"),
        Spec("silence", "timer"),
        Spec("count", "value", 1000.0),
        Spec("total", "per replica", None, "merged"),
    ]
    assert found[2] is not None
    assert found[2].words == "pages (list, 1 h to live)"
    assert declared(object()) == ()


def test_keys_and_timers_are_not_set_like_values() -> None:
    with pytest.raises(StateError, match='"user" is the key of the item'):
        Visits().user = "a"  # type: ignore[assignment]
    with pytest.raises(StateError, match=r'"silence" is a timer; set it with .set\(...\)'):
        Visits().silence = 3  # type: ignore[assignment]
    with pytest.raises(StateError, match="'0 s' is zero"):
        state.value(0, ttl="0 s")


def halves(value: int, replicas: int) -> list[int]:
    return [value // replicas + (number < value % replicas) for number in range(replicas)]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 5), st.booleans())
def test_nothing_of_a_value_per_replica_is_lost_when_their_number_changes(
    values: list[int], replicas: int, divides: bool
) -> None:
    cell = state.per_replica(0, merge=operator.add, divide=halves if divides else None)
    spread = cell.spread(values, replicas)
    assert (len(spread), sum(spread)) == (replicas, sum(values))
    if divides and replicas > len(values):
        assert max(spread) - min(spread) <= 1


def test_what_all_replicas_have_is_copied() -> None:
    model = [1]
    spread = state.per_replica([0], copied=True).spread([model], 2)
    spread[0].append(2)
    assert (spread, model) == ([[1, 2], [1]], [1])


@pytest.mark.parametrize(
    "settings",
    [{}, {"merge": operator.add, "copied": True}, {"divide": halves}, {"divide": halves, "copied": True}],
)
def test_how_a_value_per_replica_changes_is_said_once(settings: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="per_replica needs merge="):
        state.per_replica(0, **settings)


def test_a_division_that_does_not_fit_is_refused() -> None:
    cell: PerReplica[int] = state.per_replica(0, merge=operator.add, divide=lambda value, _: [value])
    with pytest.raises(StateError, match="made 1 values for 3 replicas"):
        cell.spread([4], 3)
