"""The driver's clock as a worker sees it; two threads of a worker learn of it."""

import sys
import threading
from collections.abc import Iterator

import pytest

from penstock.stats.clock_offset import Exchange
from penstock.worker.flow_time import UNKNOWN_NS, FlowTime

AHEAD_NS = 5_000_000


def exchange(number: int) -> Exchange:
    """The asker's clock is ahead by AHEAD_NS; ways take 100 to 149 ns."""
    sent_ns, way_ns = 1000 * number + AHEAD_NS, 100 + number % 50
    received_ns = sent_ns - AHEAD_NS + way_ns
    return Exchange(sent_ns, received_ns, received_ns, sent_ns + 2 * way_ns)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_unknown_until_the_first_exchange() -> None:
    clock = FlowTime()
    assert clock.now_ns() == clock.of(7) == UNKNOWN_NS
    clock.learn(exchange(0))
    assert clock.of(2 * AHEAD_NS) == AHEAD_NS


def test_times_of_the_flow_are_found_again_on_this_machine() -> None:
    clock = FlowTime()
    with pytest.raises(AssertionError):
        clock.local_ns(7)
    clock.learn(exchange(0))
    assert clock.local_ns(7) == 7 + AHEAD_NS
    assert clock.local_ns(clock.of(7)) == 7


@pytest.mark.usefixtures("hasty_threads")
def test_two_threads_learn_at_once() -> None:
    clock = FlowTime()
    problems: list[RuntimeError] = []

    def learn() -> None:
        try:
            for number in range(3000):
                clock.learn(exchange(number))
        except RuntimeError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=learn) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert clock.ahead_ns == AHEAD_NS
