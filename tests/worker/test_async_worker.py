"""A worker process with an async body: what is acknowledged when, ends of batches, careful mode, limits."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.flow import Flow
from penstock.wire import frames as wire
from penstock.wire.envelope import Tag
from penstock.wire.orders import Verdict
from penstock.worker.gauge import Gauge
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import LoneWorker, lone_worker
from tests.worker.test_worker import chain


class Gated:
    """Answers an item when a file of its name is there; shows which calls are open, and how they ended."""

    def __init__(self, place: Path) -> None:
        self.place = place

    async def __call__(self, item: int) -> int:
        (self.place / f"began-{item}").touch()
        while not (self.place / str(item)).exists():
            await asyncio.sleep(0.001)
        (self.place / f"began-{item}").unlink()
        return item

    def open_calls(self) -> set[int]:
        return {int(path.name.removeprefix("began-")) for path in self.place.glob("began-*")}

    def let(self, *items: int) -> None:
        for item in items:
            (self.place / str(item)).touch()

    def until_open(self, *items: int) -> None:
        until(lambda: self.open_calls() == set(items))


def until(holds: Any) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def until_acknowledged(worker: LoneWorker, sequence: int) -> None:
    while worker.acknowledged < sequence:
        worker.until(wire.ACK)


@pytest.mark.parametrize("lifetime", ["0 ms", "1 h"])
def test_an_input_is_acknowledged_when_all_its_calls_are_over_and_shipped(
    tmp_path: Path, lifetime: str
) -> None:
    gated = Gated(tmp_path)
    flow = chain(gated, concurrency=10, ordered=False, lifetime=lifetime, sinks=1)
    with lone_worker(flow) as worker:
        worker.start("middle")
        worker.give(1, [10, 11])
        worker.give(2, [20])
        worker.give(3, [30])
        gated.until_open(10, 11, 20, 30)
        gated.let(20, 11)
        gated.until_open(10, 30)
        worker.until(wire.REPORT)
        assert worker.acknowledged == 0
        gated.let(10, 30)
        worker.end()
        assert (sorted(worker.items()), worker.acknowledged) == ([10, 11, 20, 30], 3)


def test_what_an_older_input_adds_to_an_envelope_holds_back_its_acknowledgement(tmp_path: Path) -> None:
    gated = Gated(tmp_path)
    with lone_worker(chain(gated, ordered=False, lifetime="1 h", sinks=1)) as worker:
        worker.start("middle")
        worker.give(1, [1])
        worker.give(2, [2])
        gated.until_open(1, 2)
        gated.let(2)  # opens the envelope
        gated.until_open(1)
        gated.let(1)
        gated.until_open()
        time.sleep(0.2)  # several times as long as an idle worker waits before it acknowledges
        worker.until(wire.REPORT)
        assert (worker.acknowledged, worker.items()) == (0, [])
        worker.end()
        assert (worker.acknowledged, worker.items()) == (2, [2, 1])


def test_idle_workers_acknowledge_what_sinks_have_awaited(tmp_path: Path) -> None:
    gated = Gated(tmp_path)
    flow = Flow("lone")
    flow.source(Partitioned(1), name="source").sink(gated, name="sink", concurrency=2)
    with lone_worker(flow) as worker:
        worker.start("sink")
        worker.give(1, [1, 2, 3])
        gated.until_open(1, 2)
        worker.give(2, [4])
        gated.let(2, 3)
        gated.until_open(1)
        worker.until(wire.REPORT)
        assert worker.acknowledged == 0, "item 2 is done, but keeps its place until item 1 is"
        gated.let(1)
        until_acknowledged(worker, 1)
        gated.until_open(4)
        assert worker.acknowledged == 1
        gated.let(4)
        until_acknowledged(worker, 2)


def test_no_more_calls_than_allowed_are_open(tmp_path: Path) -> None:
    gated = Gated(tmp_path)
    with lone_worker(chain(gated, concurrency=3, ordered=False)) as worker:
        worker.start("middle")
        worker.give(1, [*range(8)])
        gated.until_open(0, 1, 2)
        gated.let(1)
        gated.until_open(0, 2, 3)
        gated.let(*range(8))
        worker.end()
        assert sorted(worker.items()) == [*range(8)]


def test_the_end_of_a_batch_waits_for_its_calls_and_another_one_begins(tmp_path: Path) -> None:
    gated = Gated(tmp_path)
    with lone_worker(chain(gated)) as worker:
        worker.start("middle")
        worker.give(1, [1, 2])
        gated.until_open(1, 2)
        worker.send(wire.frame(wire.END, b"\0"))
        worker.until(wire.REPORT)
        assert worker.items() == []
        gated.let(1, 2)
        report = worker.until(wire.ENDED)
        assert (worker.items(), worker.acknowledged) == ([1, 2], 1)
        assert (report["worker"]["items_in"], report["worker"]["items_out"]) == (2, 2)
        gated.let(3)
        worker.start("middle")
        worker.give(1, [3])
        worker.end(last=True)
        assert worker.items() == [1, 2, 3]


class Leaves:
    """Leaves something running that a stop must cancel."""

    def __init__(self, place: Path) -> None:
        self.place = place

    async def process(self, item: int, out: Any) -> None:
        self.task = asyncio.create_task(self.run_on())
        await asyncio.sleep(0)
        out(item)

    async def run_on(self) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            (self.place / "cancelled").touch()


def test_what_a_body_left_running_is_cancelled_at_a_stop_and_not_before(tmp_path: Path) -> None:
    with lone_worker(chain(Leaves(tmp_path), form="task")) as worker:
        worker.start("middle")
        worker.give(1, [1])
        worker.end()
        assert not (tmp_path / "cancelled").exists()
        worker.start("middle")
        worker.end(last=True)
        assert (tmp_path / "cancelled").exists()
        assert worker.items() == [1]


async def dies_of_two(item: int) -> int:
    await asyncio.sleep(0.001)
    if item == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_careful_workers_make_one_call_after_the_other() -> None:
    with lone_worker(chain(dies_of_two, lifetime="1 h", sinks=1)) as worker:
        worker.start("middle")
        worker.give(1, [0, 1, 2, 3])
        assert worker.exit_code() == -signal.SIGKILL
        assert (worker.items(), worker.acknowledged) == ([], 0)
    with lone_worker(chain(dies_of_two, lifetime="1 h", sinks=1)) as worker:
        worker.start("middle")
        worker.give(1, [0, 1, 2, 3], careful=True)
        assert worker.exit_code() == -signal.SIGKILL
        with contextlib.suppress(wire.ChannelClosed):
            worker.until(wire.ENDED)
        assert worker.at == [(1, 0), (1, 1), (1, 2)]
        assert worker.items() == [0, 1], "what was done before it is shipped"
    with lone_worker(chain(dies_of_two, lifetime="1 h", sinks=1, on_error="skip")) as worker:
        worker.start("middle")
        verdicts = {2: Verdict("middle", "it kills")}
        worker.give(1, [0, 1, 2, 3], careful=True, first=2, verdicts=verdicts)
        worker.give(2, [4, 5])
        assert worker.end()["worker"]["skipped"] == 1
        assert (worker.items(), worker.acknowledged) == ([3, 4, 5], 2)


async def waits_or_blocks(item: int) -> int:
    await asyncio.sleep(0.01)
    if item == 3:
        time.sleep(3600)
    if item == 5:
        await asyncio.sleep(3600)
    return item


def test_a_call_that_blocks_the_loop_is_found_and_one_that_waits_is_cancelled() -> None:
    flow = chain(waits_or_blocks, timeout="300 ms", concurrency=8, on_error="skip")
    gauge = Gauge(flow.graph())
    with lone_worker(flow, gauge=gauge) as worker:
        worker.start("middle")
        worker.give(1, [0, 1])
        worker.give(2, [2, 5])
        report = worker.end()["worker"]
        assert (sorted(worker.items()), report["skipped"]) == ([0, 1, 2], 1)
        assert gauge.over(worker.pid, time.monotonic_ns()) is None
        worker.start("middle")
        worker.give(1, [4, 5])
        worker.give(2, [7, 3, 8])
        until(lambda: gauge.over(worker.pid, time.monotonic_ns()) is not None)
        over = gauge.over(worker.pid, time.monotonic_ns())
        assert over == ("middle", "it took longer than its timeout=300 ms", 2, 1)


def mean(moments: dict[str, Any]) -> float:
    return float(moments["center"])


async def twenty_ms(item: int) -> int:
    await asyncio.sleep(0.02)
    return item


def tagged(count: int) -> Iterator[Tag]:
    now_ns = time.monotonic_ns()
    for item in range(count):
        yield Tag(item, now_ns, now_ns, -1)


def test_a_replica_is_as_busy_as_its_calls_fill_it() -> None:
    """40 calls of 20 ms, 10 at once, take 80 ms of the replica: not 800, and not the little of its thread."""
    with lone_worker(chain(twenty_ms, concurrency=10)) as worker:
        worker.start("middle")
        began_s = time.monotonic()
        worker.give(1, [*range(40)], tags=tagged(40))
        report = worker.end()
        took_s = time.monotonic() - began_s
        interval = report["interval"]
        useful_s = sum(r["interval"]["rates"]["useful_s"] for r in [*worker.reports, report])
        assert 0.08 <= useful_s <= took_s
        assert sum(r["interval"]["rates"]["processed"] for r in [*worker.reports, report]) == 40
        if interval["rates"]["processed"] == 40:
            assert 2.0 <= mean(interval["service_ms"]) == pytest.approx(mean(interval["latency_ms"]) / 10)


@settings(max_examples=8, deadline=None)
@given(
    inputs=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=5),
    concurrency=st.integers(1, 6),
    ordered=st.booleans(),
)
def test_nothing_is_lost_doubled_or_out_of_order(
    inputs: list[list[int]], concurrency: int, ordered: bool
) -> None:
    async def after(item: tuple[int, int]) -> tuple[int, int]:
        await asyncio.sleep(item[1] * 0.001)
        return item

    with lone_worker(chain(after, concurrency=concurrency, ordered=ordered, sinks=1)) as worker:
        worker.start("middle")
        number = 0
        for sequence, delays in enumerate(inputs, start=1):
            worker.give(sequence, [(number + at, delay) for at, delay in enumerate(delays)])
            number += len(delays)
        worker.end()
        numbers = [item[0] for item in worker.items()]
        assert (numbers if ordered else sorted(numbers)) == [*range(number)]
        assert worker.acknowledged == len(inputs)
