"""Declared state in a flow: by key, with ends and timers, after failures, and when replicas change."""

import operator
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import Out, Output, state
from penstock.flow.errors import JobFailed
from penstock.testing import at, run

Pair = tuple[str, int]


class Pairs:
    splits = ("all",)


PAIRS: Any = Pairs()


def first(pair: Pair) -> str:
    return pair[0]


def flow_of(name: str = "stateful") -> tuple[penstock.Flow, Output[Any]]:
    flow = penstock.Flow(name)
    return flow, flow.source(PAIRS, name="pairs")


def every_second(*pairs: Pair) -> list[Any]:
    return [timed for second, pair in enumerate(pairs) for timed in at(second, pair)]


class Sessions:
    """What came until a key was silent for 5 s."""

    user = state.key(str)
    values = state.list_of(int)
    silence = state.timer()

    def process(self, pair: Pair, out: Out[tuple[str, list[int]]]) -> None:
        self.values.append(pair[1])
        if pair[1] < 0:
            self.silence.cancel()
        else:
            self.silence.set("5 s")

    @silence.fires
    def end(self, out: Out[tuple[str, list[int]]]) -> None:
        out((self.user, self.values))
        del self.values


def test_timers_of_keys_fire_once_at_the_time_that_was_set_last() -> None:
    flow, pairs = flow_of()
    pairs.by_key(first).task(Sessions, name="sessions", parallelism=2).sink(print, name="out")
    given = every_second(("a", 1), ("b", 2), ("a", 3), ("c", 4), ("c", -1))
    result = run(flow, {"pairs": [*given, *at("20 s", ("a", 5))]}, until="30 s", commit="3 s")
    assert result["out"] == [("b", [2]), ("a", [1, 3]), ("a", [5])]
    assert [arrival.at_s for arrival in result.arrivals["out"]] == [6.0, 7.0, 25.0]


class Fading:
    value = state.value(0, ttl="3 s")
    used = state.list_of(int, ttl="3 s")

    def process(self, pair: Pair, out: Out[tuple[int, list[int]]]) -> None:
        if pair[1]:
            self.value = pair[1]
            self.used.append(pair[1])
        out((self.value, [*self.used]))


def test_a_value_lives_from_when_it_was_set_and_a_list_from_its_last_use() -> None:
    flow, pairs = flow_of()
    pairs.by_key(first).task(Fading, name="fading").sink(print, name="out")
    given = every_second(("a", 7), ("a", 0), ("a", 0), ("a", 0))
    result = run(flow, {"pairs": [*given, *at("7 s", ("a", 0))]})
    assert result["out"] == [(7, [7]), (7, [7]), (7, [7]), (0, [7]), (0, [])]


class Fragile:
    """Changes its state, then refuses odd items."""

    seen = state.list_of(int)
    total = state.per_replica(0, merge=operator.add)

    def process(self, pair: Pair, out: Out[tuple[list[int], int]]) -> None:
        self.seen.append(pair[1])
        self.total += 1
        if pair[1] % 2:
            raise ValueError(f"odd: {pair[1]}")
        out(([*self.seen], self.total))


@pytest.mark.parametrize("options", [{"on_error": "skip"}, {"on_error": "skip", "retries": 2}])
def test_an_item_that_fails_leaves_the_state_as_it_was(options: Any) -> None:
    flow, pairs = flow_of()
    pairs.by_key(first).task(Fragile, name="fragile", **options).sink(print, name="out")
    result = run(flow, {"pairs": [("a", 2), ("a", 3), ("b", 5), ("a", 4)]})
    assert result["out"] == [([2], 1), ([2, 4], 2)]
    assert result.skipped == {"fragile": 2}


class Last:
    """A sink with state, read by two keys."""

    before = state.value(0)

    def write(self, pair: Pair) -> None:
        if pair[1] < self.before:
            raise ValueError(f"{pair} after {self.before}")
        self.before = pair[1]


def test_a_sink_has_state_and_two_inputs_share_it() -> None:
    flow, pairs = flow_of()
    swapped = pairs.map(lambda pair: (pair[1], pair[0]), name="swap")
    flow.sink(
        Last, pairs.filter(lambda pair: pair[1] < 3).by_key(first), swapped.by_key(operator.itemgetter(1))
    )
    with pytest.raises(JobFailed, match="Last"):
        run(flow, {"pairs": [("a", 2), ("a", 1)]}, write=True)


class Summed:
    total = state.per_replica(0, merge=operator.add)

    def process(self, pair: Pair, out: Out[int]) -> None:
        self.total += pair[1]
        out(self.total)


def test_a_value_of_a_replica_needs_no_key_and_may_have_some() -> None:
    flow, pairs = flow_of()
    doubled = pairs.map(lambda pair: (pair[0], 10 * pair[1]), name="tenfold")
    flow.task(Summed, pairs.by_key(first), doubled).sink(print, name="out")
    assert run(flow, {"pairs": [("a", 1), ("b", 2)]})["out"][-1] == 33


class Hurried:
    count = state.value(0)

    def open(self, context: object) -> None:
        self.count += 1

    def process(self, pair: Pair, out: Out[int]) -> None: ...


def test_state_of_a_key_outside_of_an_item_is_refused_in_words() -> None:
    flow, pairs = flow_of()
    pairs.by_key(first).task(Hurried).sink(print)
    with pytest.raises(JobFailed, match=r'task "Hurried": no item is at work here, so there is no key'):
        run(flow, {"pairs": []})


# Short forms


def test_short_forms() -> None:
    flow, pairs = flow_of()
    keyed = pairs.by_key(first)
    keyed.count(parallelism=2).sink(print, name="counts")
    keyed.reduce(max).sink(print, name="highest")
    keyed.scan(lambda seen, pair: ([*seen, pair[1]], len(seen)), []).sink(print, name="before")
    keyed.distinct("2500 ms").sink(print, name="news")
    result = run(flow, {"pairs": every_second(("a", 2), ("a", 1), ("b", 5), ("a", 3), ("a", 4))})
    assert sorted(result["counts"]) == [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)]
    assert result["highest"] == [
        ("a", ("a", 2)), ("a", ("a", 2)), ("b", ("b", 5)), ("a", ("a", 3)), ("a", ("a", 4)),
    ]  # fmt: skip
    assert result["before"] == [0, 1, 0, 2, 3]
    assert result["news"] == [("a", 2), ("b", 5), ("a", 3)]


def test_a_scan_that_returns_no_pair_is_told() -> None:
    flow, pairs = flow_of()
    pairs.by_key(first).scan(lambda _, pair: pair[1], 0).sink(print)
    with pytest.raises(JobFailed, match=r"scan must return \(state, output\), not int"):
        run(flow, {"pairs": [("a", 1)]})


# Replicas that change


class Totals:
    """Counts by replica, and tells every second."""

    every = "1 s"
    taken = state.per_replica(0, merge=operator.add)

    def process(self, pair: Pair, out: Out[int]) -> None:
        self.taken += 1

    def timer(self, out: Out[int]) -> None:
        out(self.taken)


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3)), min_size=1, max_size=30),
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
)
def test_state_goes_with_its_keys_when_replicas_change(given: list[Pair], numbers: list[int]) -> None:
    flow, pairs = flow_of()
    pairs.by_key(first).count().sink(print, name="counts")
    pairs.by_key(first).task(Sessions, name="sessions").sink(print, name="sessions_out")
    pairs.task(Totals, name="totals").sink(print, name="totals_out")
    result = run(
        flow,
        {"pairs": every_second(*given)},
        until=len(given) + 20,
        commit="1500 ms",
        replicas={"count": numbers, "sessions": numbers, "totals": [*numbers, 1]},
    )
    seen: Counter[str] = Counter()
    expected = []
    for key, _ in given:
        seen[key] += 1
        expected.append((key, seen[key]))
    assert sorted(result["counts"]) == sorted(expected)
    kept = [(key, value) for key, values in result["sessions_out"] for value in values]
    assert sorted(kept) == sorted(given)
    assert result["totals_out"][-1] == len(given)


@pytest.mark.parametrize(
    ("replicas", "commit", "words"),
    [
        ({"count": [1, 2]}, None, r'can change at a commit only; say how often, as in commit="1 s"'),
        ({"pairs": [1, 2]}, "1 s", "has a replica for each of its splits"),
        ({"count": []}, "1 s", r"its number of replicas in each batch, as in \[1, 3\], not \[\]"),
        ({"fast": [1]}, "1 s", "count->fast is wired forward"),
    ],
)
def test_what_cannot_change_is_refused(replicas: Any, commit: str | None, words: str) -> None:
    flow, pairs = flow_of()
    counts = pairs.by_key(first).count(name="count")
    counts.forward().map(lambda pair: pair, name="fast").sink(print)
    with pytest.raises(penstock.FlowError, match=words):
        run(flow, {"pairs": []}, replicas=replicas, commit=commit)
