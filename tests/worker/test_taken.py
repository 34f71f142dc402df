"""What a worker tells of its input: what it took last, and what it is done with."""

import time

import msgspec
import pytest

from penstock.flow import Flow
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import LoneWorker, lone_worker

OFTEN_S = 0.01
LAST = 9


def stays_with_the_last(item: int) -> None:
    if item == LAST:
        time.sleep(0.5)


def into_a_sink(*, balanced: bool) -> Flow:
    flow = Flow("told")
    source = flow.source(Partitioned(1), name="source")
    (source.balanced() if balanced else source).sink(stays_with_the_last, name="sink")
    return flow


def begin(worker: LoneWorker) -> None:
    worker.switches = msgspec.structs.replace(worker.switches, measure_every_s=OFTEN_S)
    worker.start("sink")


def test_reports_tell_which_input_was_taken_last() -> None:
    with lone_worker(into_a_sink(balanced=False)) as worker:
        begin(worker)
        for sequence in (1, 2):
            worker.give(sequence, [sequence])
        while 2 not in worker.taken:
            worker.next_report()
        assert worker.taken == sorted(worker.taken)
        worker.end()
        worker.taken.clear()
        worker.start("sink")
        while 0 not in worker.taken:  # inputs are numbered anew in each batch
            worker.next_report()


@pytest.mark.parametrize(("balanced", "told"), [(True, 8), (False, 0)])
def test_receivers_of_balanced_streams_tell_soon_what_is_done(balanced: bool, told: int) -> None:
    """A sink sends nothing that would tell; that it is idle it cannot tell before the last one is done."""
    with lone_worker(into_a_sink(balanced=balanced)) as worker:
        begin(worker)
        with worker.together():
            for sequence in range(1, LAST + 1):
                worker.give(sequence, [sequence])
        while LAST not in worker.taken:
            worker.next_report()
        worker.drain()
        assert worker.acknowledged == told


def test_a_large_envelope_is_done_with_at_once() -> None:
    with lone_worker(into_a_sink(balanced=True)) as worker:
        begin(worker)
        with worker.together():
            worker.give(1, [bytes(3000)])
            worker.give(2, [LAST])
        while 2 not in worker.taken:
            worker.next_report()
        worker.drain()
        assert worker.acknowledged == 1
