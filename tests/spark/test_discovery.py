"""Splits that are added while a flow runs, without any Spark."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

import msgspec
import pytest

import penstock as ps
from penstock.flow.layers import lay_out
from penstock.spark.discovery import Discovery
from penstock.spark.reading import Reading
from penstock.wire.orders import Position


class Shelves:
    """A source that grows when a test says so; `start` is its end."""

    name = "shelves"
    discover_every_s: float | None = 3.0

    def __init__(self, *splits: str) -> None:
        self.splits = splits
        self.there = list(splits)
        self.problem: Exception | None = None

    def start(self, split: str) -> int:
        return 100

    def start_of_new(self, split: str) -> int:
        return 0

    def discover(self) -> list[str]:
        if self.problem is not None:
            raise self.problem
        return self.there


class FakeBoard:
    """A boundary whenever one is wanted, unless there is a problem."""

    def __init__(self) -> None:
        self.turning = nullcontext()
        self.boundaries = 0
        self.problem: Exception | None = None

    def read_more(self, add: Callable[[], None]) -> float:
        if self.problem is not None:
            raise self.problem
        add()
        self.boundaries += 1
        return 5.0


class Found:
    """A flow with such a source and two replicas of it."""

    def __init__(self) -> None:
        self.source = Shelves("a", "b", "c")
        flow = ps.Flow("library", ids=True)
        flow.source(cast("Any", self.source), name="books", replicas=2).sink(print, name="out")
        self.layout = lay_out(flow.graph())
        self.reading = Reading(flow.graph())
        self.board = FakeBoard()
        self.running = True
        self.told: list[str] = []
        self.over = threading.Event()
        self.discovery = Discovery(
            self.reading, cast("Any", self.board), 0.001, self.over, lambda: self.running, self.told.append
        )

    def dealt(self) -> list[list[str]]:
        return [one["splits"] for one in msgspec.json.decode(self.reading.by_partition(self.layout))]


def test_what_is_added_goes_behind_what_is_there() -> None:
    found = Found()
    assert found.dealt() == [["a", "c"], ["b"]]
    found.source.there = ["a", "aa", "b", "d"]
    found.discovery.look()
    found.discovery.look()
    assert found.dealt() == [["a", "c", "d"], ["b", "aa"]], "nothing that is read is taken from its replica"
    assert found.reading.starts["books"]["aa"] == Position(0, 0)
    assert found.reading.starts["books"]["a"] == Position(0, 100)
    assert found.board.boundaries == 1
    assert found.told == ['source "books" also reads aa, d from now on']


def test_a_flow_that_does_not_run_is_left_alone() -> None:
    found = Found()
    found.source.there.append("d")
    found.running = False
    found.discovery.look()
    assert (found.board.boundaries, found.told) == (0, [])
    found.running = True
    found.board.problem = ps.FlowError("the batch does not end")
    with pytest.raises(ps.FlowError, match="does not end"):
        found.discovery.look()
    assert found.dealt() == [["a", "c"], ["b"]]


def test_trouble_is_told_once_and_it_looks_again() -> None:
    found = Found()
    found.source.problem = OSError("nobody answers")
    found.discovery.start()
    assert _soon(lambda: bool(found.told))
    found.source.there.append("d")
    found.source.problem = None
    assert _soon(lambda: len(found.told) == 2)
    found.over.set()
    found.discovery.join(10)
    assert found.told == [
        "it cannot look for more to read: nobody answers",
        'source "books" also reads d from now on',
    ]


def test_a_split_that_the_last_commit_does_not_know_was_added_after_it() -> None:
    found = Found()
    found.reading.follow({})
    assert found.reading.starts["books"]["c"] == Position(0, 100), "the flow has never committed anything"
    found.reading.follow({"books": {"a": Position(9, 9), "b": Position(8, 8)}})
    assert found.reading.starts["books"] == {
        "a": Position(0, 100),
        "b": Position(0, 100),
        "c": Position(0, 0),
    }


def test_how_often_somebody_looks() -> None:
    found = Found()
    assert found.reading.look_every_s == 3.0
    found.source.discover_every_s = None
    assert found.reading.look_every_s is None


def _soon(condition: Callable[[], bool]) -> bool:
    waiting = threading.Event()
    return any(condition() or waiting.wait(0.005) for _ in range(2000)) or condition()
