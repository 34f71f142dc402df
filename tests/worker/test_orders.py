"""Orders that reach a worker: they take effect within a batch, the newest holds, a lease ends."""

import contextlib
import time
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.wire import frames as wire
from penstock.wire.orders import Switches
from tests.worker.lone_worker import LoneWorker, lone_worker
from tests.worker.test_worker import LEFT, chain


def test_switches_take_effect_within_a_batch() -> None:
    with lone_worker(chain(lambda item: item)) as worker:
        worker.start("middle")
        worker.until(wire.REPORT)
        slow = {**worker.switches.lifetime_ms, "middle->sink": 3_600_000.0}
        worker.change(active={**worker.switches.active, "sink": 1}, lifetime_ms=slow, measure_every_s=0.002)
        for _ in range(3):
            worker.until(wire.REPORT)  # often: the order has been adopted
        worker.give(1, [*range(600)])
        worker.until(wire.OUT)
        assert len(worker.out[-1][2].items) > 1, "the lifetime has changed"
        worker.out.clear()
        worker.end()
        assert {target for target, _, _ in worker.out} == {0}, "only one replica is active"


def active(count: int, worker: LoneWorker) -> Switches:
    """The order of that version, after which so many replicas of the sink are active."""
    switches = worker.switches
    return msgspec.structs.replace(
        switches, active={**switches.active, "sink": count}, measure_every_s=0.002, version=count
    )


def active_now(worker: LoneWorker) -> int:
    """How many replicas of the sink get something; ends the batch."""
    worker.out.clear()
    worker.give(1, [*range(20)])
    worker.end()
    targets = {target for target, _, _ in worker.out}
    assert targets == {*range(len(targets))}
    return len(targets)


@settings(max_examples=25)
@given(st.permutations([1, 2, 3, 4, 5]), st.lists(st.booleans(), min_size=4, max_size=4))
def test_in_whatever_order_orders_come_the_newest_holds(versions: list[int], starting: list[bool]) -> None:
    """On the control channel, or with the start of a batch, which may have been written long before."""
    with lone_worker(chain(lambda item: item, sinks=5)) as worker:
        worker.switches = active(versions[0], worker)
        worker.start("middle")
        newest = versions[0]
        for version, with_a_batch in zip(versions[1:], starting, strict=True):
            newest = max(newest, version)
            if with_a_batch:
                worker.end()
                worker.switches = active(version, worker)
                worker.start("middle")
            else:
                worker.order(active(version, worker))
                worker.until_heard()
        assert active_now(worker) == newest == 5


def test_orders_that_came_before_their_batch_win() -> None:
    """Also between two batches, when nothing can be sent."""
    with lone_worker(chain(lambda item: item, sinks=5)) as worker:
        worker.switches = old = active(2, worker)
        worker.start("middle")
        assert active_now(worker) == 2
        worker.order(active(4, worker))
        worker.until_heard()
        worker.start("middle")
        assert active_now(worker) == 4
        worker.switches = active(5, worker)
        worker.start("middle")
        worker.order(old)
        worker.until_heard()
        assert active_now(worker) == 5


def test_an_order_that_says_the_same_again_is_followed() -> None:
    """Not every change has a number of its own: the bridge repeats its last order to a worker that is new."""
    with lone_worker(chain(lambda item: item, sinks=5)) as worker:
        worker.switches = active(3, worker)
        worker.start("middle")
        worker.order(worker.switches)
        worker.until_heard()
        assert active_now(worker) == 3


FLOOD = 3000


def flood(item: bytes) -> list[bytes]:
    return [item + number.to_bytes(2, "big") for number in range(FLOOD)]


def test_a_worker_that_cannot_send_reports_and_obeys_all_the_same() -> None:
    """Nobody reads its output: the order that would relieve it must not wait for that."""
    with lone_worker(chain(flood, form="flat_map", lifetime="3 ms")) as worker:
        worker.switches = msgspec.structs.replace(worker.switches, measure_every_s=3600.0)
        worker.start("middle")
        worker.next_report()
        worker.give(1, [bytes(2000)])
        worker.until_stuck()
        began_s = time.monotonic()
        worker.change(measure_every_s=0.05, active={**worker.switches.active, "sink": 1})
        for _ in range(3):
            report = worker.next_report()
        assert time.monotonic() - began_s < 2.0
        assert report["worker"]["items_out"] < FLOOD / 2, "it is still stuck"
        worker.end()
        receivers = [target for target, _, envelope in worker.out for _ in envelope.items]
        assert len(receivers) == FLOOD
        assert {*receivers[: FLOOD // 10]} == {0, 1}
        assert {*receivers[FLOOD // 2 :]} == {0}, "it obeyed before it could go on"


def test_a_worker_whose_lease_is_over_touches_no_item(tmp_path: Path) -> None:
    """It may have stood still: what came meanwhile belongs to its successor."""
    touched = tmp_path / "touched"
    with lone_worker(chain(lambda item: touched.write_text("touched"))) as worker:
        worker.lease_until_ns = time.monotonic_ns() - 1
        worker.start("middle")
        with contextlib.suppress(BrokenPipeError):
            worker.give(1, [1])
        assert worker.exit_code() == LEFT
    assert not touched.exists()
