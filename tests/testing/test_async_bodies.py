"""Async bodies and retries in the process of a test: right results, in the right order, at once."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock.flow import Flow, Output, retry
from penstock.flow.errors import JobFailed
from penstock.testing import run
from tests.flow.random_flows import Partitioned


def flow_of() -> tuple[Flow, Output[Any]]:
    flow = Flow("waits", ids=True)
    return flow, flow.source(Partitioned(1), name="numbers")


def ignore(item: object) -> None:
    """The end."""


async def slower_first(item: int) -> int:
    """The first items take longest: an hour less for each."""
    await asyncio.sleep(3600 * (10 - item))
    return 10 * item


async def is_even(item: int) -> bool:
    await asyncio.sleep(1)
    return item % 2 == 0


async def both(item: int) -> list[int]:
    await asyncio.sleep(1)
    return [item, -item]


async def trickle(item: int) -> AsyncIterator[int]:
    for number in range(item):
        await asyncio.sleep(1)
        yield number


class Split:
    outputs = ("low", "high")

    async def open(self, context: Any) -> None:
        await asyncio.sleep(1)
        self.context = context
        self.flushed = 0

    async def process(self, item: int, out: Any) -> None:
        before = (self.context.item_id, self.context.input)
        out(item, "low" if item < 3 else "high")
        await asyncio.sleep(10 - item)
        assert (self.context.item_id, self.context.input) == before
        out(before, "high")

    async def close(self, out: Any) -> None:
        await asyncio.sleep(1)
        out("closed", "low")


@pytest.mark.parametrize(
    ("form", "body", "expected"),
    [
        ("map", slower_first, [0, 10, 20, 30, 40]),
        ("filter", is_even, [0, 2, 4]),
        ("flat_map", both, [0, 0, 1, -1, 2, -2, 3, -3, 4, -4]),
        ("flat_map", trickle, [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]),
    ],
)
def test_functions_are_awaited_and_their_order_is_kept(form: str, body: Any, expected: list[int]) -> None:
    flow, numbers = flow_of()
    getattr(numbers.batched("20 ms"), form)(body, concurrency=3).sink(ignore, name="out")
    began_s = time.monotonic()
    assert run(flow, {"numbers": range(5)})["out"] == expected
    assert time.monotonic() - began_s < 60, "hours did not really pass"


def test_results_come_as_they_are_ready_if_no_order_is_asked_for() -> None:
    flow, numbers = flow_of()
    numbers.batched("20 ms").map(slower_first, concurrency=3, ordered=False).sink(ignore, name="out")
    # 0 takes 10 hours, 1 takes 9, 2 takes 8; there is room for 3 then, which takes 7.
    assert run(flow, {"numbers": range(4)})["out"] == [20, 10, 0, 30]


def test_objects_have_outputs_hooks_and_a_context_for_each_call() -> None:
    flow, numbers = flow_of()
    split = numbers.batched("20 ms").task(Split, concurrency=4)
    split["low"].sink(ignore, name="low")
    split["high"].sink(ignore, name="high")
    result = run(flow, {"numbers": range(5)})
    assert result["low"] == [0, 1, 2, "closed"]
    contexts = [entry for entry in result["high"] if not isinstance(entry, int)]
    assert [item_id[-2] for item_id, _ in contexts] == [0, 1, 2, 3, 4]
    assert {name for _, name in contexts} == {"numbers->Split"}
    assert result["high"][3:5] == [3, contexts[3]], "what a call sends stays together"


def test_ids_are_those_of_a_plain_task() -> None:
    seen: list[list[Any]] = []

    class Ids:
        def open(self, context: Any) -> None:
            self.context = context

        def process(self, item: int, out: Any) -> None:
            out((item, self.context.item_id))

    def plain(item: int) -> list[int]:
        return [item, -item]

    for body in (both, plain):
        flow, numbers = flow_of()
        numbers.batched("20 ms").flat_map(body, name="both").task(Ids).sink(ignore, name="out")
        seen.append(sorted(run(flow, {"numbers": range(5)})["out"]))
    assert seen[0] == seen[1]


class Written:
    def __init__(self, path: Path) -> None:
        self.path = path

    async def open(self, context: Any) -> None:
        self.items: list[int] = []

    async def write(self, item: int) -> None:
        await asyncio.sleep(5 - item)
        if item == 2:
            raise ValueError("not two")
        self.items.append(item)

    async def flush(self) -> None:
        await asyncio.sleep(0)
        self.path.write_text(repr(self.items))


def test_sinks_are_awaited(tmp_path: Path) -> None:
    flow, numbers = flow_of()
    numbers.batched("20 ms").sink(Written(tmp_path / "out"), name="out", concurrency=5, on_error="skip")
    result = run(flow, {"numbers": range(5)}, write=True)
    assert result["out"] == [0, 1, 3, 4], "in order, and only what was written"
    assert (tmp_path / "out").read_text() == "[4, 3, 1, 0]", "they were written at the same time"
    assert result.skipped == {"out": 1}


async def picky(item: int) -> int:
    await asyncio.sleep(0.01)
    if item == 1:
        raise ValueError("no ones")
    if item == 2:
        await asyncio.sleep(3600)
    if item == 3:
        raise asyncio.CancelledError("by itself")
    return item


def test_errors_timeouts_and_cancellations_go_the_way_of_on_error() -> None:
    flow, numbers = flow_of()
    numbers.batched("20 ms").map(picky, timeout="1 s", on_error="dead_letter").sink(ignore, name="out")
    result = run(flow, {"numbers": range(5)})
    assert result["out"] == [0, 4]
    assert [(letter.item, letter.error) for letter in result.dead_letters] == [
        ("1", "ValueError: no ones"),
        ("2", "TimeoutError: it took longer than its timeout=1 s"),
        ("3", "CancelledError: by itself"),
    ]
    assert [letter.id[-2] for letter in result.dead_letters if letter.id] == [1, 2, 3]


def test_an_error_stops_the_flow() -> None:
    flow, numbers = flow_of()
    numbers.batched("20 ms").map(picky, name="picky").sink(ignore, name="out")
    with pytest.raises(JobFailed, match="no ones") as failed:
        run(flow, {"numbers": range(5)})
    assert 'task "picky"' in str(failed.value)


def test_a_key_that_raises_is_an_error_of_the_item() -> None:
    flow, numbers = flow_of()

    def key(item: int) -> int:
        return 1 // (item - 10)

    mapped = numbers.batched("20 ms").map(slower_first, on_error="skip", name="slow")
    mapped.by_key(key).sink(ignore, name="out")
    result = run(flow, {"numbers": range(5)})
    assert (result["out"], result.skipped) == ([0, 20, 30, 40], {"slow": 1})


def test_real_waits_take_their_time() -> None:
    async def in_thread(item: int) -> int:
        async with asyncio.timeout(30):
            return await asyncio.to_thread(_late, item)

    flow, numbers = flow_of()
    numbers.map(in_thread, concurrency=5).sink(ignore, name="out")
    assert run(flow, {"numbers": range(3)})["out"] == [0, 1, 2]


def _late(item: int) -> int:
    time.sleep(0.02)
    return item


def test_an_async_task_may_begin_a_chain() -> None:
    flow, numbers = flow_of()
    fetched = numbers.batched("20 ms").map(slower_first, name="fetch", concurrency=3)
    fetched.forward().map(lambda item: item + 1, name="add").forward().sink(ignore, name="out")
    assert run(flow, {"numbers": range(5)}, chains=[["fetch", "add", "out"]])["out"] == [1, 11, 21, 31, 41]


class Flaky:
    """Fails the first times it is asked for an item, each time after it has sent something."""

    def __init__(self, times: int, problem: type[Exception] = ConnectionError) -> None:
        self.left: dict[int, int] = {}
        self.times = times
        self.problem = problem

    def fails(self, item: int) -> bool:
        left = self.left[item] = self.left.get(item, self.times) - 1
        return left >= 0

    def process(self, item: int, out: Any) -> None:
        out(("half", item) if self.left.get(item, 1) > 0 else ("last", item))
        if self.fails(item):
            raise self.problem(f"not yet {item}")
        out(item)


class FlakyLater(Flaky):
    async def process(self, item: int, out: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0.001)
        super().process(item, out)


@pytest.mark.parametrize("body", [Flaky(2), FlakyLater(2)])
def test_what_failed_is_tried_again_and_sends_nothing_twice(body: Flaky) -> None:
    flow, numbers = flow_of()
    numbers.batched("20 ms").task(body, retries=2).sink(ignore, name="out")
    began_s = time.monotonic()
    assert run(flow, {"numbers": range(3)})["out"] == [
        sent for item in range(3) for sent in (("last", item), item)
    ]
    assert time.monotonic() - began_s < 60


@pytest.mark.parametrize("kind", [Flaky, FlakyLater])
def test_tries_come_to_an_end_and_only_certain_errors_are_tried_again(kind: type[Flaky]) -> None:
    for body, retries in ((kind(3), 2), (kind(1, LookupError), retry(5, on=OSError))):
        flow, numbers = flow_of()
        numbers.task(body, retries=retries, on_error="skip", name="flaky").sink(ignore, name="out")
        result = run(flow, {"numbers": range(3)})
        assert (result["out"], result.skipped) == ([], {"flaky": 3})


def test_retries_of_plain_functions() -> None:
    asked: list[int] = []

    def some(item: int) -> Any:
        asked.append(item)
        yield item
        if len(asked) % 2:
            raise ValueError("odd")

    flow, numbers = flow_of()
    numbers.flat_map(some, retries=1).filter(lambda item: item != 1, retries=1).sink(ignore, name="out")
    assert run(flow, {"numbers": range(3)})["out"] == [0, 2]


def test_nothing_can_be_sent_when_a_call_is_over() -> None:
    kept: list[Any] = []

    class Hoards:
        async def process(self, item: int, out: Any) -> None:
            if kept:
                kept[0](item)
            kept.append(out)

    flow, numbers = flow_of()
    numbers.task(Hoards, on_error="dead_letter").sink(ignore, name="out")
    letters = run(flow, {"numbers": range(2)}).dead_letters
    assert [letter.error for letter in letters] == [
        "RuntimeError: out(item) was called after process(item, out) had returned"
    ]
