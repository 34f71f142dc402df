"""A worker process over a pair of sockets: batches, careful mode, timers, switches and failures."""

import contextlib
import itertools
import json
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.flow import Flow
from penstock.stats.clock_offset import Exchange
from penstock.wire import frames as wire
from penstock.wire.envelope import Tag
from penstock.wire.frames import REMOTE
from penstock.wire.ids import origin_of, stream_code
from penstock.wire.orders import Link, Position, SourceOrder, Switches, Verdict
from penstock.worker.context import Context, Out
from penstock.worker.flow_time import UNKNOWN_NS
from tests.flow.random_flows import Partitioned
from tests.spark.items import numbered
from tests.worker.forking import STAYS, Forking, goes_within
from tests.worker.lone_worker import LoneWorker, lone_worker

LEFT = -signal.SIGKILL
"""How a worker ends whose bridge is gone: with all of its process group."""


def sink(item: object) -> None:
    """The end of the flows below."""


def chain(
    body: Any,
    *,
    form: str = "map",
    ids: bool = False,
    lifetime: str = "0 ms",
    sinks: int = 2,
    **options: Any,
) -> Flow:
    """source -> middle -> sink; the worker under test is "middle"."""
    flow = Flow("lone", ids=ids)
    source = flow.source(Partitioned(1), name="source")
    middle = getattr(source, form)(body, name="middle", **options)
    middle.batched(lifetime).sink(sink, name="sink", parallelism=sinks)
    return flow


def reciprocal(item: int) -> float:
    return 1 / item


def late(item: int) -> int:
    time.sleep(0.1)
    return item


def iter_of(item: int) -> object:
    return (number for number in range(item))


def test_batch_after_batch() -> None:
    with lone_worker(chain(lambda item: item + 1)) as worker:
        worker.start("middle")
        for sequence in (1, 2, 3):
            worker.give(sequence, [10 * sequence, 10 * sequence + 1])
        report = worker.end()["worker"]
        assert worker.items() == [11, 12, 21, 22, 31, 32]
        assert [target for target, _, _ in worker.out] == [0, 1] * 3
        assert {place for _, place, _ in worker.out} == {REMOTE}
        assert worker.acknowledged == 3
        assert (report["task"], report["items_in"], report["items_out"]) == ("middle", 6, 6)
        worker.start("middle")
        worker.give(4, [0])
        assert worker.end(last=True)["worker"]["items_in"] == 7
        assert worker.items()[6:] == [1]
        assert worker.acknowledged == 4


def test_it_goes_when_the_bridge_does() -> None:
    with lone_worker(chain(lambda item: item)) as worker:
        worker.start("middle")
        worker.until(wire.REPORT)
        worker.hang_up()
        assert worker.exit_code() == LEFT


def test_nobody_to_send_to_is_no_failure_of_an_item(tmp_path: Path) -> None:
    flow = chain(late, on_error="dead_letter")
    with lone_worker(flow, str(tmp_path)) as worker:
        worker.start("middle")
        worker.until(wire.REPORT)
        worker.give(1, [1, 2])
        worker.stop_listening()
        assert worker.exit_code() == LEFT
        assert not list(tmp_path.iterdir())


def test_everything_is_shipped_at_the_end_whatever_its_lifetime() -> None:
    with lone_worker(chain(lambda item: item, lifetime="1 h")) as worker:
        worker.start("middle")
        worker.give(1, [*range(10)])
        worker.end()
        assert sorted(worker.items()) == [*range(10)]
        assert len(worker.out) == 2, "one envelope for each replica"
        assert worker.acknowledged == 1


class Hooked:
    """Shows its hooks and the context in what it sends."""

    def open(self, context: Context) -> None:
        self.context = context
        self.opened_in = context.batch

    def process(self, item: object, out: Out) -> None:
        context = self.context
        out((item, context.input, context.item_id, context.batch, self.opened_in))

    def close(self, out: Out) -> None:
        out("closed")


def test_hooks_context_and_ids() -> None:
    with lone_worker(chain(Hooked, form="task", ids=True)) as worker:
        worker.start("middle", batch=41)
        worker.give(1, ["a", "b"], ids=[(0, 7), None])
        worker.end()
        worker.start("middle", batch=43)
        worker.give(2, ["c"], ids=[(0, 8)])
        worker.end(last=True)
        assert worker.items() == [
            ("a", "source->middle", (0, 7), 41, 41),
            ("b", "source->middle", None, 41, 41),
            ("c", "source->middle", (0, 8), 43, 41),
            "closed",
        ]
        first = stream_code("middle->sink")
        assert [envelope.ids for _, _, envelope in worker.out] == [
            [(0, 7, first)],
            [None],
            [(0, 8, first)],
            [None],
        ]


def test_tags_are_handed_on() -> None:
    flow = chain(lambda item: [item, item], form="flat_map")
    with lone_worker(flow) as worker:
        worker.start("middle")
        worker.give(1, [1, 2, 3], tags=[Tag(1, 50, 40)])
        worker.end()
        tags = [
            (envelope.items[0], [tag.origin_ns for tag in envelope.tags]) for _, _, envelope in worker.out
        ]
        assert tags == [(1, []), (1, []), (2, [40]), (2, [40]), (3, []), (3, [])]


def test_latency_is_taken_at_a_sink() -> None:
    with lone_worker(chain(lambda item: item)) as worker:
        worker.start("sink")
        now_ns = time.monotonic_ns()
        worker.give(1, [1, 2], stream=1, tags=[Tag(0, now_ns, now_ns - 5_000_000)])
        report = worker.end()["worker"]
        assert report["latency_ms"]["count"] == 1
        assert report["items_in"] == 2


AHEAD_NS = 5_000_000_000


def test_times_of_senders_elsewhere_are_set_right() -> None:
    """This machine's clock is five seconds ahead of the driver's, whose time the stamps tell."""
    with lone_worker(chain(lambda item: item)) as worker:
        worker.exchange = Exchange(AHEAD_NS, 0, 0, AHEAD_NS)
        worker.start("sink")
        driver_ns = time.monotonic_ns() - AHEAD_NS
        emitted_ns, shipped_ns = driver_ns - 4_000_000, driver_ns - 3_000_000
        tag = Tag(0, emitted_ns, driver_ns - 9_000_000)
        worker.give(1, [1], stream=1, tags=[tag], ship_ns=shipped_ns)
        report = worker.end()
        (channel,) = report["channels"]
        assert channel["times"]["output_batch_ms"]["center"] == 1.0
        assert 3.0 <= channel["times"]["transport_ms"]["center"] < 1000
        assert 4.0 <= channel["times"]["latency_ms"]["center"] < 1000
        assert report["worker"]["latency_ms"]["count"] == 1
        assert 9.0 <= report["worker"]["latency_ms"]["total"] < 1000


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_where_a_clock_is_not_known_latencies_are_absent(who: str) -> None:
    with lone_worker(chain(lambda item: item)) as worker:
        now_ns = time.monotonic_ns()
        tag = Tag(0, now_ns, now_ns)
        if who == "receiver":
            worker.exchange = None
        else:
            tag = Tag(0, UNKNOWN_NS, UNKNOWN_NS)
        worker.start("sink")
        worker.give(1, [1], stream=1, tags=[tag], ship_ns=UNKNOWN_NS if who == "sender" else now_ns)
        report = worker.end()
        assert [channel["times"]["latency_ms"]["count"] for channel in report["channels"]] in ([], [0])
        assert report["worker"]["latency_ms"]["count"] == 0
        assert report["interval"]["service_ms"]["count"] == 1, "the task itself was timed"
        assert report["interval"]["queue_wait_ms"]["count"] == 1


def test_an_unknown_clock_is_stamped_as_unknown_until_it_is_learned() -> None:
    with lone_worker(chain(lambda item: item)) as worker:
        worker.exchange = None
        worker.start("middle")
        worker.give(1, [1], tags=[Tag(0, UNKNOWN_NS, UNKNOWN_NS)])
        worker.until(wire.OUT)
        worker.tell(wire.frame(wire.LINK, msgspec.json.encode(Link(Exchange(AHEAD_NS, 0, 0, AHEAD_NS)))))
        for sequence in itertools.count(2):
            worker.give(sequence, [sequence], tags=[Tag(0, UNKNOWN_NS, UNKNOWN_NS)])
            worker.until(wire.OUT)
            if worker.out[-1][2].tags[0].emit_ns != UNKNOWN_NS:
                break
        before, after = worker.out[0][2], worker.out[-1][2]
        assert (before.ship_ns, before.tags[0].emit_ns) == (UNKNOWN_NS, UNKNOWN_NS)
        now_ns = time.monotonic_ns() - AHEAD_NS
        assert now_ns - 60_000_000_000 < after.tags[0].emit_ns <= after.ship_ns <= now_ns


def test_items_between_tagged_ones_keep_their_order() -> None:
    with lone_worker(chain(lambda item: item, lifetime="1 h")) as worker:
        worker.start("middle")
        worker.give(1, [*range(12)], tags=[Tag(item, 1, 1 + item) for item in (0, 1, 5, 11)])
        worker.end()
        (first, second) = (envelope for _, _, envelope in worker.out)
        assert (first.items, second.items) == ([0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11])
        tags = [(e.items[tag.item], tag.origin_ns) for e in (first, second) for tag in e.tags]
        assert tags == [(0, 1), (1, 2), (5, 6), (11, 12)]


def test_careful_mode_names_each_item_and_puts_the_poisoned_aside(tmp_path: Path) -> None:
    flow = chain(lambda item: item, on_error="dead_letter")
    with lone_worker(flow, str(tmp_path)) as worker:
        worker.start("middle")
        verdict = Verdict("middle", "it took longer than its timeout=1 s")
        worker.give(5, ["a", "bad", "c"], careful=True, verdicts={1: verdict})
        report = worker.end()["worker"]
        assert worker.at == [(5, 0), (5, 1), (5, 2)]
        assert worker.items() == ["a", "c"]
        assert report["dead_lettered"] == 1
        (letter,) = (tmp_path / "middle-0.jsonl").read_text().splitlines()
        assert json.loads(letter)["item"] == "'bad'"
        assert json.loads(letter)["error"] == verdict.problem


def test_careful_mode_begins_where_the_dead_worker_was_and_ships_each_item_before_the_next() -> None:
    with lone_worker(chain(lambda item: item, lifetime="1 h")) as worker:
        worker.start("middle")
        worker.give(5, ["done", "b", "c"], careful=True, first=1)
        worker.until(wire.OUT)
        worker.end()
        assert worker.at == [(5, 1), (5, 2)]
        assert [envelope.items for _, _, envelope in worker.out] == [["b"], ["c"]]


def test_the_policy_of_the_task_at_fault_counts() -> None:
    with lone_worker(chain(lambda item: item, on_error="skip")) as worker:
        worker.start("middle")
        worker.give(1, ["bad"], careful=True, verdicts={0: Verdict("sink", "it hangs")})
        failed = worker.until(wire.FAILED)["failed"]
        assert (failed["task"], failed["problem"]) == ("middle", "it hangs\nitem: 'bad'\n")


def test_careful_input_is_acknowledged_at_once() -> None:
    with lone_worker(chain(lambda item: item, form="filter")) as worker:
        worker.start("middle")
        worker.give(8, [0], careful=True)
        worker.until(wire.ACK)
        assert worker.acknowledged == 8
        worker.end()


def test_an_idle_worker_acknowledges_by_itself() -> None:
    with lone_worker(chain(lambda item: item, form="filter")) as worker:
        worker.start("middle")
        worker.give(1, [0])
        worker.until(wire.ACK)
        assert worker.acknowledged == 1


def test_skipping_goes_on_with_the_next_item() -> None:
    with lone_worker(chain(reciprocal, on_error="skip")) as worker:
        worker.start("middle")
        worker.give(1, [1, 0, 2, 0, 4])
        report = worker.end()["worker"]
        assert worker.items() == [1.0, 0.5, 0.25]
        assert report["skipped"] == 2


def test_failing_names_task_replica_item_and_error() -> None:
    with lone_worker(chain(reciprocal, parallelism=3)) as worker:
        worker.start("middle", replica=2)
        worker.give(1, [1, 0, 2])
        failed = worker.until(wire.FAILED)["failed"]
        assert (failed["task"], failed["replica"]) == ("middle", 2)
        assert failed["problem"].startswith("ZeroDivisionError: division by zero\nitem: 0\nTraceback ")
        assert worker.items() == [1.0], "nothing after a failure takes effect"
        worker.hang_up()
        assert worker.exit_code() == LEFT


def test_an_item_that_cannot_be_shipped_fails_its_task() -> None:
    with lone_worker(chain(iter_of, lifetime="2 ms")) as worker:
        worker.start("middle")
        worker.give(1, [1])
        problem = worker.until(wire.FAILED)["failed"]["problem"]
        assert "cannot pickle 'generator' object" in problem


class Broken:
    """Fails outside any item."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _at(self, where: str) -> None:
        if where == self.where:
            raise RuntimeError("no")

    def open(self, context: Context) -> None:
        self._at("open()")

    def process(self, item: object, out: Out) -> None:
        out(item)

    def timer(self, out: Out) -> None:
        self._at("timer()")

    def flush(self) -> None:
        self._at("flush()")

    def close(self) -> None:
        self._at("close()")


@pytest.mark.parametrize("where", ["open()", "timer()", "flush()", "close()"])
def test_errors_outside_items_are_fatal_even_when_items_are_skipped(where: str) -> None:
    flow = chain(Broken(where), form="task", on_error="skip", every="5 ms")
    with lone_worker(flow) as worker:
        worker.start("middle")
        worker.give(1, [1])
        if where in ("flush()", "close()"):
            worker.send(wire.frame(wire.END, bytes([where == "close()"])))
        problem = worker.until(wire.FAILED)["failed"]["problem"]
        assert problem.startswith(f"{where} raised RuntimeError: no\nTraceback ")


class Ticking:
    """Counts its timer."""

    ticks = 0

    def process(self, item: object, out: Out) -> None:
        raise AssertionError("nothing is sent to it")

    def timer(self, out: Out) -> None:
        self.ticks += 1
        out(self.ticks)


def test_timers_run_without_input() -> None:
    with lone_worker(chain(Ticking, form="task", every="3 ms")) as worker:
        worker.start("middle")
        for _ in range(3):
            worker.until(wire.OUT)
        worker.end()
        assert worker.items()[:3] == [1, 2, 3]


def test_lifetimes_are_kept_without_input() -> None:
    with lone_worker(chain(lambda item: item, lifetime="4 ms")) as worker:
        worker.start("middle")
        worker.give(1, [1, 2])
        worker.until(wire.OUT)
        worker.until(wire.OUT)
        assert worker.items() == [1, 2]
        worker.end()


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


def test_what_a_task_forked_goes_with_its_worker() -> None:
    with lone_worker(chain(Forking, form="task")) as worker:
        worker.start("middle")
        worker.give(1, [STAYS])
        worker.until(wire.OUT)
        ((own, forked),) = worker.items()
        assert own == worker.pid
        assert not goes_within(forked, 0.0)
        worker.hang_up()
        assert worker.exit_code() == LEFT
        assert goes_within(forked, 2.0)


BEGINNING = Position(0, 0)


def source_flow(*, ids: bool) -> Flow:
    flow = Flow("lone", ids=ids)
    flow.source(Partitioned(2), name="first").sink(sink, name="one")
    flow.source(numbered(20, rate=1e6), name="second").sink(sink, name="two")
    return flow


def test_a_source_reads_to_its_end_and_says_where_it_stands() -> None:
    with lone_worker(source_flow(ids=True)) as worker:
        worker.start("second", source=SourceOrder("0/1", BEGINNING, BEGINNING, time.monotonic_ns()))
        ended = worker.until(wire.ENDED)
        assert [item.index for item in worker.items()] == [*range(20)]
        assert ended["source"]["ordinal"] == 20
        assert ended["source"]["done"]
        ids = [i for _, _, envelope in worker.out for i in envelope.ids or []]
        origin, first = origin_of("second", "0/1"), stream_code("second->two")
        assert ids == [(origin, n, first) for n in range(20)]


def test_a_source_that_cannot_be_read_is_fatal() -> None:
    with lone_worker(source_flow(ids=False)) as worker:
        worker.start("first", source=SourceOrder("0/2", BEGINNING, BEGINNING, time.monotonic_ns()))
        problem = worker.until(wire.FAILED)["failed"]["problem"]
        assert problem.startswith("reading the source raised AttributeError: ")


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
