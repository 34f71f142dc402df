"""What a worker shows its parent: whose time an item takes, and when a limit is exceeded."""

import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from penstock.flow import Flow
from penstock.worker.gauge import Gauge, Over, has_limits, is_timed
from tests.flow.random_flows import Partitioned, ignore

S = 1_000_000_000


class Clock:
    """A time that passes when the test says so."""

    def __init__(self) -> None:
        self.now_ns = 100 * S

    def monotonic_ns(self) -> int:
        return self.now_ns

    def passes(self, seconds: float) -> None:
        self.now_ns += round(seconds * S)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic_ns", made.monotonic_ns)
    return made


@pytest.fixture
def unlimited() -> Iterator[None]:
    """The limit of this very process, back to what it was."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    yield
    resource.setrlimit(resource.RLIMIT_DATA, before)


def flow(**head: Any) -> Flow:
    made = Flow("limited")
    source = made.source(Partitioned(1), name="source")
    source.map(ignore, name="head", **head).forward().map(ignore, name="behind", timeout="2 s").sink(print)
    source.map(ignore, name="beside").sink(ignore, name="end")
    return made


def gauge(**head: Any) -> Gauge:
    made = Gauge(flow(**head).graph())
    made.begin("head")
    made.envelope(7)
    return made


def test_who_needs_a_clock() -> None:
    graph = flow().graph()
    assert has_limits(graph)
    assert [is_timed(graph, name) for name in ("head", "behind", "beside", "end")] == [
        True,
        True,
        False,
        False,
    ]
    plain = Flow("plain")
    plain.source(Partitioned(1), name="source").sink(ignore, name="end")
    assert not has_limits(plain.graph())


def test_an_item_that_takes_too_long_is_named(clock: Clock) -> None:
    shown = gauge(timeout="5 s")
    seen: list[Over | None] = []

    def slow(item: float) -> None:
        clock.passes(item)
        seen.append(shown.over(os.getpid(), clock.now_ns))

    step = shown.timed(slow, "head")
    step(4.9)
    step(5.1)
    assert seen == [None, Over("head", "it took longer than its timeout=5 s", 7, 1)]
    clock.passes(100)
    assert shown.over(os.getpid(), clock.now_ns) is None, "between two items nothing runs"


def test_an_item_that_raised_is_over(clock: Clock) -> None:
    shown = gauge(timeout="5 s")
    step = shown.timed(lambda item: 1 / item, "head")
    with pytest.raises(ZeroDivisionError):
        step(0)
    clock.passes(6)
    assert shown.over(os.getpid(), clock.now_ns) is None


def test_waiting_for_room_in_the_output_does_not_count(clock: Clock) -> None:
    shown = gauge(timeout="5 s")
    seen: list[Over | None] = []

    def look(seconds: float) -> None:
        clock.passes(seconds)
        seen.append(shown.over(os.getpid(), clock.now_ns))

    send = shown.sending(lambda data: look(60))

    def step(item: object) -> None:
        look(3)
        send(b"")
        look(1.9)
        look(0.2)

    shown.timed(step, "head")(0)
    assert [over is None for over in seen] == [True, True, True, False]


def test_a_chained_task_has_its_own_clock_and_that_of_the_head_stands_still(clock: Clock) -> None:
    shown = gauge(timeout="5 s")
    seen: list[Over | None] = []

    def look(seconds: float) -> None:
        clock.passes(seconds)
        seen.append(shown.over(os.getpid(), clock.now_ns))

    behind = shown.timed(look, "behind")

    def head(item: object) -> None:
        look(4)
        behind(1.9)
        behind(2.1)
        look(0.9)
        look(0.2)

    shown.timed(head, "head")("item")
    words = 'task "behind", chained to it, took longer than its timeout=2 s'
    assert seen == [
        None,
        None,
        Over("behind", words, 7, 0),
        None,
        Over("head", "it took longer than its timeout=5 s", 7, 0),
    ]


def test_what_a_timer_of_the_head_sends_on_is_no_fault_of_an_item(clock: Clock) -> None:
    shown = gauge(timeout="5 s")
    seen: list[Over | None] = []

    def look(seconds: float) -> None:
        clock.passes(seconds)
        seen.append(shown.over(os.getpid(), clock.now_ns))

    shown.timed(look, "head")(1)
    shown.timed(look, "behind")(3)
    assert [over and over.item for over in seen] == [None, -1]
    clock.passes(60)
    assert shown.over(os.getpid(), clock.now_ns) is None


def test_the_item_of_a_list_is_known_only_if_it_came_alone(clock: Clock) -> None:
    shown = Gauge(flow(timeout="5 s").graph())
    shown.begin("head")
    seen: list[Over | None] = []

    def slow(items: list[float]) -> None:
        clock.passes(sum(items))
        seen.append(shown.over(os.getpid(), clock.now_ns))

    step = shown.timed_batch(slow, "head")
    step([3, 3])
    step([6])
    shown.envelope(7, 4)  # carefully: that item, and nobody else
    step([6])
    step([6])
    assert [over and over.item for over in seen] == [-1, -1, 4, -1]
    assert {over and over.problem for over in seen} == {"it took longer than its timeout=5 s"}


def test_a_list_of_a_chained_task_is_of_no_item_of_the_head(clock: Clock) -> None:
    shown = gauge(timeout="5 s")
    seen: list[Over | None] = []

    def slow(items: list[float]) -> list[float]:
        clock.passes(sum(items))
        seen.append(shown.over(os.getpid(), clock.now_ns))
        return items

    behind = shown.timed_batch(slow, "behind")
    shown.timed(lambda item: behind([item, item]), "head")(1.5)
    assert behind([1.0]) == [1.0]
    assert [over and (over.task, over.item) for over in seen] == [("behind", -1), None]


def take_40_mb() -> list[Over | None]:
    """What is over before and after that, and when a task with a limit of its own has joined."""
    shown = gauge(memory="20 MB")
    shown.limit_memory([20_000_000])
    found = [shown.over(os.getpid(), time.monotonic_ns())]
    held = bytearray(b"x") * 40_000_000
    found.append(shown.over(os.getpid(), time.monotonic_ns()))
    shown.limit_memory([20_000_000, 60_000_000])
    found.append(shown.over(os.getpid(), time.monotonic_ns()))
    assert len(held) == 40_000_000
    return found


def test_memory_beyond_the_limit() -> None:
    """In a process of its own: the memory of this one goes up and down with the tests before."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        before, over, joined = pool.submit(take_40_mb).result()
    assert before is None
    assert over is not None
    assert (over.task, over.item) == ("head", -1)
    assert over.problem.startswith("its worker used 4")
    assert over.problem.endswith(" MB, more than its memory=20 MB")
    assert joined is None, "the limits of a chain add up"


def test_far_too_much_at_once_cannot_be_had(unlimited: None) -> None:
    shown = gauge(memory="20 MB")
    shown.limit_memory([20_000_000])
    with pytest.raises(MemoryError):
        bytearray(400_000_000)


def test_a_process_that_is_gone_uses_nothing(unlimited: None) -> None:
    shown = gauge(memory="20 MB")
    shown.limit_memory([20_000_000])
    assert shown.over(2**22 + 1, time.monotonic_ns()) is None


def test_without_a_limit_nothing_is_looked_at() -> None:
    shown = gauge()
    shown.limit_memory([None, None])
    assert shown.over(os.getpid(), time.monotonic_ns()) is None
