"""Frames that go together, and when they may."""

import threading

import pytest

from penstock.flow import Flow
from penstock.worker.sending import Frames, Pace
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import lone_worker

QUICK_NS, SLOW_NS = 5_000, 200_000


class Sent:
    """What the bridge gets, by system call."""

    def __init__(self, *, gathers: bool = True) -> None:
        self.calls: list[bytes] = []
        self.frames = Frames(self.calls.append, threading.RLock(), gathers=gathers)


def quick_flow() -> Flow:
    flow = Flow("lone")
    source = flow.source(Partitioned(1), name="source")
    source.map(lambda item: item + 1, name="middle").sink(print, name="sink")
    return flow


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
        pace.took(useful_ns, 1)
    return pace.is_quick


def test_only_a_quick_task_lets_results_wait() -> None:
    pace = Pace()
    assert not pace.is_quick, "nobody knows it yet"
    assert is_quick_after(pace, QUICK_NS)
    assert pace.together == 10
    assert not is_quick_after(pace, SLOW_NS)
    assert pace.together == 1


def test_a_large_envelope_makes_no_task_slow() -> None:
    pace = Pace()
    pace.took(QUICK_NS * 1000, 1000)
    assert (pace.is_quick, pace.together) == (True, 10)


def test_results_wait_for_a_moment() -> None:
    pace = Pace()
    assert [pace.took(20_000, 1) for _ in range(6)] == [False, False, True, False, False, True]
    assert pace.took(SLOW_NS, 1)


def test_results_of_a_quick_task_go_together_and_wait_for_no_other_input() -> None:
    with lone_worker(quick_flow()) as worker:
        worker.start("middle")
        for first in (1, 601):
            with worker.together():
                for sequence in range(first, first + 600):
                    worker.give(sequence, [sequence])
            worker.until_items(first + 599)
        worker.give(1201, [1201])
        worker.until_items(1201)
        assert worker.items() == [*range(2, 1203)]


def test_results_of_a_crowd_share_envelopes_and_keep_their_order() -> None:
    with lone_worker(quick_flow()) as worker:
        worker.start("middle")
        worker.give(1, [*range(1000)])
        worker.until_items(1000)
        assert {len(envelope.items) for _, _, envelope in worker.out} == {1}
        given = 1000
        while len(worker.out) == given and given < 50_000:  # on a busy machine no task is quick at first
            with worker.together():
                for item in range(given, given + 1000):
                    worker.give(item, [item])
            given += 1000
            worker.until_items(given)
        assert len(worker.out) < given
        assert worker.items() == [*range(1, given + 1)]


def test_results_of_a_large_envelope_do_not_wait_for_its_last_item() -> None:
    with lone_worker(quick_flow()) as worker:
        worker.start("middle")
        worker.give(1, [*range(1000)])
        worker.until_items(1000)
        worker.give(2, [*range(20_000)])
        worker.until_items(21_000)
        assert max(len(envelope.items) for _, _, envelope in worker.out) < 5_000
