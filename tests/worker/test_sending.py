"""Frames that go together, and when they may."""

import threading

import pytest

from penstock.flow import Flow
from penstock.wire.frames import OUT
from penstock.worker.sending import Frames, Pace
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import lone_worker

QUICK_NS, SLOW_NS = 5_000, 200_000


class Sent:
    """What the bridge gets, by system call."""

    def __init__(self, *, gathers: bool = True) -> None:
        self.calls: list[bytes] = []
        self.frames = Frames(self.calls.append, threading.RLock(), gathers=gathers)


def test_frames_go_at_once_unless_they_are_gathered() -> None:
    sent = Sent()
    sent.frames.send(b"a")
    sent.frames.gather()
    sent.frames.send(b"b")
    sent.frames.send(b"c")
    assert sent.calls == [b"a"]
    sent.frames.apart()
    sent.frames.send(b"d")
    assert sent.calls == [b"a", b"bc", b"d"]


def test_what_was_gathered_can_go_in_between() -> None:
    sent = Sent()
    sent.frames.gather()
    sent.frames.send(b"a")
    sent.frames.let_go()
    sent.frames.send(b"b")
    assert sent.calls == [b"a"]
    sent.frames.apart()
    sent.frames.apart()
    assert sent.calls == [b"a", b"b"]


@pytest.mark.parametrize(("size", "count"), [(10, 32), (40_000, 2)])
def test_few_wait_and_little(size: int, count: int) -> None:
    sent = Sent()
    sent.frames.gather()
    for _ in range(count - 1):
        sent.frames.send(bytes(size))
    assert not sent.calls
    sent.frames.send(bytes(size))
    assert [len(call) for call in sent.calls] == [size * count]


def test_whoever_takes_single_frames_gets_them() -> None:
    sent = Sent(gathers=False)
    sent.frames.gather()
    sent.frames.send(b"a")
    assert sent.calls == [b"a"]


def is_quick_after(pace: Pace, useful_ns: int) -> bool:
    for _ in range(256):
        pace.took(useful_ns)
    return pace.is_quick


def test_only_a_quick_task_lets_results_wait() -> None:
    pace = Pace()
    assert not pace.is_quick, "nobody knows it yet"
    assert is_quick_after(pace, QUICK_NS)
    assert not is_quick_after(pace, SLOW_NS)


def test_results_wait_for_a_moment() -> None:
    pace = Pace()
    assert [pace.took(20_000) for _ in range(6)] == [False, False, True, False, False, True]
    assert pace.took(SLOW_NS)


def test_results_of_a_quick_task_go_together_and_wait_for_no_other_input() -> None:
    flow = Flow("lone")
    flow.source(Partitioned(1), name="source").map(lambda item: item + 1, name="middle").sink(
        print, name="sink"
    )
    with lone_worker(flow) as worker:
        worker.start("middle")
        for first in (1, 601):
            with worker.together():
                for sequence in range(first, first + 600):
                    worker.give(sequence, [sequence])
            while len(worker.out) < first + 599:
                worker.until(OUT)
        worker.give(1201, [1201])
        worker.until(OUT)
        assert worker.items() == [*range(2, 1203)]
