"""Tasks that take lists of items: which items, whose results and errors, and the same as one by one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.testing import at, run
from penstock.wire.ids import origin_of, stream_code


class Numbers:
    """A source that can only be given."""

    splits = ("all",)


def numbers(flow: penstock.Flow, name: str = "numbers") -> Any:
    source: Any = Numbers()
    return flow.source(source, name=name)


def drop(item: Any) -> None:
    pass


def with_size(items: list[Any]) -> list[tuple[Any, int]]:
    return [(item, len(items)) for item in items]


def batched(items: Any, **options: Any) -> list[Any]:
    """What came of items, and the sizes of their batches."""
    flow = penstock.Flow("sizes")
    numbers(flow).map_batches(with_size, **options).sink(drop)
    return run(flow, {"numbers": items})["drop"]


def test_a_batch_is_what_has_arrived_up_to_its_size() -> None:
    assert batched([1, 2, 3]) == [(1, 3), (2, 3), (3, 3)]
    assert batched([1, *at("5 ms", 2, 3)]) == [(1, 1), (2, 2), (3, 2)]
    assert [size for _, size in batched(range(5), size=2)] == [2, 2, 2, 2, 1]
    assert batched([]) == []


def test_flat_map_batches_makes_a_list_of_each_item() -> None:
    def spread(items: list[int]) -> list[Any]:
        return [range(item) if item % 2 else [item] * item for item in items]

    flow = penstock.Flow("flat")
    numbers(flow).flat_map_batches(spread).sink(drop)
    assert run(flow, {"numbers": [2, 0, 3]})["drop"] == [2, 2, 0, 1, 2]
    assert run(flow, {"numbers": [4, 2, 0]})["drop"] == [4, 4, 4, 4, 2, 2]


def test_batches_hold_items_of_one_input() -> None:
    class Inputs:
        def open(self, context: Any) -> None:
            self.context = context

        def __call__(self, items: list[Any]) -> list[Any]:
            return [(item, self.context.input, len(items)) for item in items]

    flow = penstock.Flow("inputs")
    left, right = numbers(flow, "left"), numbers(flow, "right")
    left.map_batches(Inputs(), right, name="both").sink(drop)
    result = run(flow, {"left": [1, 2], "right": ["a", "b", "c"]})
    assert sorted(result["drop"], key=repr) == [
        ("a", "right->both", 3), ("b", "right->both", 3), ("c", "right->both", 3),
        (1, "left->both", 2), (2, "left->both", 2),
    ]  # fmt: skip


def odd_fail(items: list[int]) -> list[int]:
    if any(item % 2 for item in items):
        raise ValueError(f"odd ones among {items}")
    return items


def too_few(items: list[int]) -> list[int]:
    return [item for item in items if item % 2 == 0]


def faulty(body: Callable[[list[int]], Any], on_error: Any, **options: Any) -> penstock.Flow:
    flow = penstock.Flow("faulty", **options)
    numbers(flow).map_batches(body, on_error=on_error, name="faulty").sink(drop)
    return flow


@pytest.mark.parametrize("body", [odd_fail, too_few])
def test_items_of_a_batch_that_raises_are_tried_one_by_one(body: Callable[[list[int]], Any]) -> None:
    result = run(faulty(body, "skip"), {"numbers": range(7)})
    assert result["drop"] == [0, 2, 4, 6]
    assert result.skipped == {"faulty": 3}


def test_dead_letters_hold_the_items_at_fault_with_their_ids() -> None:
    result = run(faulty(odd_fail, "dead_letter", ids=True), {"numbers": [2, 3, 4, 5]})
    assert result["drop"] == [2, 4]
    assert [(letter.load(), letter.error) for letter in result.dead_letters] == [
        (3, "ValueError: odd ones among [3]"),
        (5, "ValueError: odd ones among [5]"),
    ]
    assert [letter.id and letter.id[1] for letter in result.dead_letters] == [1, 3]
    assert {letter.input for letter in result.dead_letters} == {"numbers->faulty"}


def test_with_fail_nothing_is_tried_again_and_the_batch_is_named(tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def noted(items: list[int]) -> list[int]:
        with calls.open("a") as file:
            file.write("x")
        return odd_fail(items)

    with pytest.raises(penstock.JobFailed) as caught:
        run(faulty(noted, "fail"), {"numbers": [2, 3]})
    assert calls.read_text() == "x"
    assert 'task "faulty", replica 0: ValueError: odd ones among [2, 3]\nbatch of 2 items: [2, 3]\n' in str(
        caught.value
    )
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(penstock.JobFailed, match=r"(?s)ValueError: odd ones among \[3\]\nitem: 3\n"):
        run(faulty(odd_fail, "fail"), {"numbers": [3]})


def yielded(items: list[int]) -> Iterator[int]:
    return iter(items)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (too_few, "the function returned 1 results for a batch of 3 items; result i must belong to item i"),
        (lambda items: items * 2, "the function returned 6 results for a batch of 3 items"),
        (
            lambda items: None,
            "map_batches takes a list with a result for each item, but its function returned",
        ),
        (yielded, "but its function returned list_iterator"),
        (set, "but its function returned set"),
        (str, "but its function returned str"),
    ],
)
def test_other_results_than_one_for_each_item_are_an_error(body: Any, words: str) -> None:
    with pytest.raises(penstock.JobFailed) as caught:
        run(faulty(body, "fail"), {"numbers": [1, 2, 3]})
    assert f"WrongResults: {words}" in str(caught.value) or f"{words}\nbatch of 3 items" in str(caught.value)


def test_the_list_belongs_to_the_function() -> None:
    def emptied(items: list[int]) -> list[int]:
        found = [items.pop(0) for _ in range(len(items))]
        if 3 in found:
            raise ValueError("a three")
        return found

    result = run(faulty(emptied, "skip"), {"numbers": [1, 2, 3]})
    assert (result["drop"], result.skipped) == ([1, 2], {"faulty": 1})


def test_arrays_are_lists_of_results() -> None:
    class Column:
        """As NumPy has them: neither a list nor a sequence by its type."""

        def __init__(self, values: list[int]) -> None:
            self._values = values

        def __len__(self) -> int:
            return len(self._values)

        def __iter__(self) -> Iterator[int]:
            return iter(self._values)

    assert run(faulty(Column, "fail"), {"numbers": [1, 2]})["drop"] == [1, 2]


def test_a_result_that_cannot_be_sent_is_an_error_of_its_item() -> None:
    flow = penstock.Flow("keys")
    made = numbers(flow).map_batches(
        lambda items: [item or [] for item in items], name="made", on_error="skip"
    )
    made.by_key(lambda item: item).sink(drop)
    result = run(flow, {"numbers": [1, 0, 2]})
    assert (result["drop"], result.skipped) == ([1, 2], {"made": 1})


class Store:
    """A sink that takes lists, and refuses those with a nine."""

    def open(self, context: Any) -> None:
        self.context = context
        self.calls: list[Any] = []

    def write_many(self, items: list[Any]) -> None:
        self.calls.append((items, self.context.item_ids))
        if 9 in items:
            raise OSError("no nines")

    def flush(self) -> None:
        raise RuntimeError(repr(self.calls))


def test_a_sink_is_given_lists_with_their_ids() -> None:
    flow = penstock.Flow("store", ids=True)
    numbers(flow).sink(Store, size=2)
    with pytest.raises(penstock.JobFailed) as caught:
        run(flow, {"numbers": [1, 2, 3]}, write=True)
    code, origin = stream_code("numbers->Store"), origin_of("numbers", "all")
    ids = [(origin, ordinal, code) for ordinal in range(3)]
    assert f"RuntimeError: {[([1, 2], ids[:2]), ([3], ids[2:])]}" in str(caught.value)


class Quiet(Store):
    def flush(self) -> None:
        pass


def test_items_that_a_sink_refuses_are_put_aside_alone() -> None:
    flow = penstock.Flow("refused")
    numbers(flow).sink(Quiet(), name="quiet", on_error="dead_letter")
    result = run(flow, {"numbers": [1, 9, 2]}, write=True)
    assert result["quiet"] == [1, 2]
    assert [(letter.load(), letter.error) for letter in result.dead_letters] == [(9, "OSError: no nines")]
    assert run(flow, {"numbers": [1, 9, 2]})["quiet"] == [1, 9, 2], "without write=True sinks only collect"


class Tick:
    """Sends what it got at its timer and at its end."""

    every = "10 ms"

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def process(self, item: Any, out: Any) -> None:
        self.kept.append(item)

    def timer(self, out: Any) -> None:
        for item in self.kept:
            out(item)
        self.kept = []

    def close(self, out: Any) -> None:
        self.timer(out)


def test_a_chained_task_takes_what_timers_and_ends_send() -> None:
    flow = penstock.Flow("ticks")
    ticks = numbers(flow).task(Tick, name="tick")
    ticks.forward().map_batches(with_size, name="sizes").forward().sink(drop)
    items = [1, 2, *at("15 ms", 3), *at("18 ms", 4), *at("25 ms", 5)]
    result = run(flow, {"numbers": items}, chains=[["tick", "sizes", "drop"]])
    assert [(arrival.item, arrival.at_s) for arrival in result.arrivals["drop"]] == [
        ((1, 2), 0.01), ((2, 2), 0.01), ((3, 2), 0.02), ((4, 2), 0.02), ((5, 1), 0.025),
    ]  # fmt: skip


def some_fail(item: int) -> int:
    if item % 5 == 0:
        raise ValueError(f"no {item}")
    return item + 1


def parts(item: int) -> list[int]:
    return [item, -item, item + 7][: item % 4]


class Seen:
    """Sends its items with their ids."""

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, item: Any, out: Any) -> None:
        out((item, self.context.item_id))


class SeenTogether:
    def open(self, context: Any) -> None:
        self.context = context

    def __call__(self, items: list[Any]) -> list[Any]:
        return list(zip(items, self.context.item_ids or [None] * len(items), strict=True))


def wired(output: Any, wiring: str) -> Any:
    return output.by_key(lambda item: item % 3) if wiring == "by_key" else getattr(output, wiring)()


def pipe(sizes: tuple[int, int, int] | None, wiring: str, lifetime: str, *, ids: bool) -> penstock.Flow:
    """The same three tasks, item by item or with lists of these sizes."""
    flow = penstock.Flow("pipe", ids=ids)
    source = numbers(flow).batched(lifetime)
    if sizes is None:
        a = source.map(some_fail, name="a", on_error="dead_letter")
        b = a.batched(lifetime).forward().flat_map(parts, name="b")
        c = wired(b.batched(lifetime), wiring).task(Seen, name="c")
    else:
        a = source.map_batches(
            lambda items: [some_fail(item) for item in items], name="a", on_error="dead_letter", size=sizes[0]
        )
        b = (
            a.batched(lifetime)
            .forward()
            .flat_map_batches(lambda items: [parts(item) for item in items], name="b", size=sizes[1])
        )
        c = wired(b.batched(lifetime), wiring).map_batches(SeenTogether(), name="c", size=sizes[2])
    c.forward().sink(drop)
    return flow


@given(
    st.lists(st.integers(0, 30), max_size=12),
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
    st.sampled_from(["round_robin", "by_key", "broadcast", "forward"]),
    st.sampled_from(["0 ms", "5 ms"]),
    st.booleans(),
    st.sampled_from(
        [[], [["a", "b"]], [["c", "drop"]], [["a", "b"], ["c", "drop"]], [["a", "b", "c", "drop"]]]
    ),
)
def test_lists_give_the_same_items_ids_order_and_errors_as_items_one_by_one(
    items: list[int],
    sizes: tuple[int, int, int],
    wiring: str,
    lifetime: str,
    ids: bool,
    chains: list[list[str]],
) -> None:
    if wiring != "forward" and any(len(chain) > 2 for chain in chains):
        chains = [["a", "b"], ["c", "drop"]]
    one_by_one = run(pipe(None, wiring, lifetime, ids=ids), {"numbers": items})
    together = run(pipe(sizes, wiring, lifetime, ids=ids), {"numbers": items}, chains=chains)
    assert together["drop"] == one_by_one["drop"]
    assert [(a.load(), a.id, a.error) for a in together.dead_letters] == [
        (a.load(), a.id, a.error) for a in one_by_one.dead_letters
    ]
