"""A sink that delivers later than it takes: what it has not delivered is not acknowledged."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.flow import Flow
from penstock.io.protocol import DeliveryError
from penstock.wire import frames as wire
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import LoneWorker, lone_worker

SOON_S = 20.0


class Slow:
    """Delivers as many items as a file says; all of them when it is flushed."""

    def __init__(self, told: Path) -> None:
        self.told = told
        self.written = 0
        self.flushed_at = 0

    def write(self, item: Any) -> None:
        if item == "bad":
            raise ValueError(item)
        if item == "undeliverable":
            raise DeliveryError("the receiver is gone for good")
        self.written += 1

    def settle(self) -> int:
        safe = json.loads(self.told.read_text())
        if safe == "never":
            raise DeliveryError("the receiver is gone")
        return max(self.flushed_at, min(int(safe), self.written))

    def flush(self) -> None:
        self.flushed_at = self.written


def flow_into(sink: Slow, **options: Any) -> Flow:
    flow = Flow("late")
    flow.source(Partitioned(1), name="source").sink(sink, name="sink", **options)
    return flow


def tell(told: Path, safe: Any) -> None:
    """In one step, so that a worker never reads half of it."""
    whole = told.with_suffix(".part")
    whole.write_text(json.dumps(safe))
    whole.rename(told)


def until_acknowledged(lone: LoneWorker, sequence: int) -> None:
    deadline = time.monotonic() + SOON_S
    while lone.acknowledged < sequence and time.monotonic() < deadline:
        lone.until(wire.ACK)
    assert lone.acknowledged == sequence


def acknowledged_by_then(lone: LoneWorker) -> int:
    """What was acknowledged when the worker has had time to do so many times over."""
    time.sleep(0.3)
    lone.drain()
    return lone.acknowledged


@pytest.fixture
def told(tmp_path: Path) -> Path:
    tell(tmp_path / "told", 0)
    return tmp_path / "told"


def test_an_input_is_acknowledged_when_all_its_items_are_delivered(told: Path) -> None:
    with lone_worker(flow_into(Slow(told))) as lone:
        lone.start("sink")
        lone.give(1, ["a", "b"])
        lone.give(2, ["c"])
        lone.give(3, ["d"])
        assert acknowledged_by_then(lone) == 0
        tell(told, 1)
        assert acknowledged_by_then(lone) == 0  # "b" is still on its way
        tell(told, 3)
        until_acknowledged(lone, 2)
        lone.end()
        assert lone.acknowledged == 3  # flushed at the end of the batch


def test_items_that_were_refused_are_not_waited_for(told: Path) -> None:
    tell(told, 1)
    with lone_worker(flow_into(Slow(told), on_error="skip")) as lone:
        lone.start("sink")
        lone.give(1, ["a", "bad"])
        until_acknowledged(lone, 1)


def test_careful_items_are_delivered_before_the_next_is_touched(told: Path) -> None:
    with lone_worker(flow_into(Slow(told))) as lone:
        lone.start("sink")
        lone.give(1, ["a", "b"], careful=True)
        lone.give(2, ["c"], careful=True)
        lone.end()
        assert lone.at == [(1, 0), (1, 1), (2, 0)]


def test_what_cannot_be_delivered_any_more_fails_the_flow(told: Path) -> None:
    with lone_worker(flow_into(Slow(told), on_error="skip")) as lone:
        lone.start("sink")
        tell(told, "never")
        lone.give(1, ["a"])
        failed = lone.until(wire.FAILED)["failed"]
    assert "settle() raised DeliveryError: the receiver is gone" in failed["problem"]


def test_an_item_is_not_skipped_for_the_fault_of_another(told: Path) -> None:
    with lone_worker(flow_into(Slow(told), on_error="skip")) as lone:
        lone.start("sink")
        lone.give(1, ["undeliverable"])
        failed = lone.until(wire.FAILED)["failed"]
    assert "delivering what was written raised DeliveryError" in failed["problem"]
