"""A worker process over a pair of sockets: batches, careful mode, timers, switches and failures."""

import itertools
import json
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.flow import Flow
from penstock.flow.record import Metadata
from penstock.io.letters import Letter
from penstock.stats.clock_offset import Exchange
from penstock.wire import frames as wire
from penstock.wire.envelope import Tag
from penstock.wire.frames import REMOTE
from penstock.wire.ids import origin_of, stream_code
from penstock.wire.orders import Link, Position, SourceOrder, Verdict
from penstock.worker.context import Context, Out
from penstock.worker.flow_time import UNKNOWN_NS
from tests.flow.random_flows import Partitioned
from tests.spark.items import numbered
from tests.worker.forking import STAYS, Forking, goes_within
from tests.worker.lone_worker import lone_worker

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


def followed(*sequence: str) -> Flow:
    """source -> middle -> sink, and source -> sink, with a constraint."""
    flow = Flow("lone")
    source = flow.source(Partitioned(1), name="source")
    middle = source.map(late, name="middle")
    flow.sink(sink, middle, source, name="sink")
    flow.constrain("20 ms", list(sequence), name="fast")
    return flow


TO_MIDDLE, TO_SINK, ASIDE = "source->middle", "middle->sink", "source->sink"
ENTERED_S, EMITTED_S, DUE_S = 3000, 1000, 5000
"""How long ago an item of a test entered a sequence, was emitted, was due."""


def follow(flow: Flow, task: str, stream: str) -> tuple[dict[str, float], list[float]]:
    """What a worker that got one tagged item says of constraints, and how old what it sent was, in s."""
    with lone_worker(flow) as worker:
        worker.start(task)
        number = [one.name for one in worker.graph.streams].index(stream)
        now_ns = time.monotonic_ns()
        emitted_ns, due_ns, entered_ns = (now_ns - ago_s * 10**9 for ago_s in (EMITTED_S, DUE_S, ENTERED_S))
        worker.give(1, [1, 2], stream=number, tags=[Tag(1, emitted_ns, due_ns, entered_ns)])
        report = worker.end()
        passed = {name: sketch["total"] * 1e-3 for name, sketch in report["passed_ms"].items()}
        assert all(sketch["count"] == 1 for sketch in report["passed_ms"].values())
        entries_ns = [tag.entry_ns for _, _, envelope in worker.out for tag in envelope.tags]
        return passed, [(now_ns - entry_ns) * 1e-9 for entry_ns in entries_ns if entry_ns != UNKNOWN_NS]


@pytest.mark.parametrize(
    ("sequence", "least_s"),
    [
        ((TO_MIDDLE,), DUE_S + 0.1),
        ((TO_MIDDLE, "middle"), DUE_S + 0.2),
        (("middle",), 0.1),
        ((TO_MIDDLE, "middle", TO_SINK), None),
        (("middle", TO_SINK), None),
        ((ASIDE, "sink"), None),
    ],
)
def test_an_item_that_leaves_a_sequence_tells_how_long_it_took(
    sequence: tuple[str, ...], least_s: float | None
) -> None:
    """The task takes 100 ms for the item before it, and 100 ms for it."""
    passed, _ = follow(followed(*sequence), "middle", TO_MIDDLE)
    if least_s is None:
        assert passed == {}
    else:
        assert least_s <= passed["fast"] < least_s + 100


@pytest.mark.parametrize(
    ("sequence", "least_s"),
    [
        ((TO_SINK, "sink"), EMITTED_S),
        ((TO_MIDDLE, "middle", TO_SINK), ENTERED_S),
        (("middle", TO_SINK, "sink"), ENTERED_S),
    ],
)
def test_who_entered_elsewhere_brings_the_time_along(sequence: tuple[str, ...], least_s: float) -> None:
    passed, _ = follow(followed(*sequence), "sink", TO_SINK)
    assert least_s <= passed["fast"] < least_s + 100
    assert follow(followed(*sequence), "sink", ASIDE) == ({}, []), "it came by another way"


@pytest.mark.parametrize(
    ("sequence", "ages_s"),
    [
        ((TO_MIDDLE, "middle", TO_SINK), [DUE_S]),
        (("middle", TO_SINK), [0]),
        ((TO_SINK,), []),
        ((TO_MIDDLE,), []),
    ],
)
def test_the_time_of_entering_is_handed_on_within_a_sequence(
    sequence: tuple[str, ...], ages_s: list[float]
) -> None:
    """That is its due time, or when the task took it, just now; none if it enters only with this stream."""
    _, found_s = follow(followed(*sequence), "middle", TO_MIDDLE)
    assert found_s == pytest.approx(ages_s, abs=100)


def test_a_chained_task_follows_items_as_one_that_is_alone() -> None:
    flow = Flow("lone")
    first = flow.source(Partitioned(1), name="source").map(late, name="first")
    second = first.forward().map(late, name="second")
    second.sink(sink, name="sink")
    flow.constrain("20 ms", ["first", "first->second", "second", "second->sink"], name="fast")
    with lone_worker(flow) as worker:
        worker.switches = msgspec.structs.replace(worker.switches, chains=[["first", "second"]])
        worker.start("first")
        worker.until(wire.JOIN)
        worker.tell(wire.frame(wire.JOINED))
        now_ns = time.monotonic_ns()
        worker.give(1, [1], tags=[Tag(0, now_ns, now_ns)])
        worker.until(wire.OUT)
        (tag,) = worker.out[-1][2].tags
        assert now_ns <= tag.entry_ns < tag.emit_ns - 200_000_000
        worker.end()


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


def test_careful_mode_keeps_metadata_also_of_what_is_put_aside(tmp_path: Path) -> None:
    class Told:
        def open(self, context: Context) -> None:
            self.context = context

        def process(self, item: str, out: Out) -> None:
            out((item, self.context.timestamp))

    flow = chain(Told, form="task", on_error="dead_letter")
    known: list[Metadata | None] = [Metadata(timestamp=1), Metadata({"a": b"b"}, 2), None]
    with lone_worker(flow, str(tmp_path)) as worker:
        worker.start("middle")
        verdict = Verdict("middle", "it hangs")
        worker.give(5, ["a", "bad", "c"], metadata=known, careful=True, verdicts={1: verdict})
        worker.end()
        assert worker.items() == [("a", 1), ("c", None)]
        assert [envelope.metadata for _, _, envelope in worker.out] == [[Metadata(timestamp=1)], None]
        (line,) = (tmp_path / "middle-0.jsonl").read_bytes().splitlines()
        assert msgspec.json.decode(line, type=Letter).metadata == known[1]


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


class Windowing(Ticking):
    def timer(self, out: Out) -> None:
        time.sleep(0.02)
        super().timer(out)


def test_the_time_of_timers_is_useful() -> None:
    with lone_worker(chain(Windowing, form="task", every="50 ms")) as worker:
        worker.start("middle")
        for _ in range(3):
            worker.until(wire.OUT)
        reports = [*worker.reports, worker.end()]
        useful_s = sum(report["interval"]["rates"]["useful_s"] for report in reports)
        assert 0.06 <= useful_s < 1.0


class Dawdling:
    """An item that takes 20 ms to code."""

    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(0.02)
        return (int, ())


@pytest.mark.parametrize("lifetime", ["0 ms", "4 ms"])
def test_coding_is_useful_whichever_thread_does_it(lifetime: str) -> None:
    with lone_worker(chain(lambda _: Dawdling(), lifetime=lifetime)) as worker:
        worker.start("middle")
        for sequence in (1, 2, 3):
            worker.give(sequence, [0])
            worker.until(wire.OUT)
        reports = [*worker.reports, worker.end()]
        useful_s = sum(report["interval"]["rates"]["useful_s"] for report in reports)
        assert 0.06 <= useful_s < 1.0


def test_lifetimes_are_kept_without_input() -> None:
    with lone_worker(chain(lambda item: item, lifetime="4 ms")) as worker:
        worker.start("middle")
        worker.give(1, [1, 2])
        worker.until(wire.OUT)
        worker.until(wire.OUT)
        assert worker.items() == [1, 2]
        worker.end()


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


def whole_order(split: str) -> SourceOrder:
    beginning = {split: Position(0, 0)}
    return SourceOrder(beginning, beginning, time.monotonic_ns())


def source_flow(*, ids: bool) -> Flow:
    flow = Flow("lone", ids=ids)
    flow.source(Partitioned(2), name="first").sink(sink, name="one")
    flow.source(numbered(20, rate=1e6), name="second").sink(sink, name="two")
    return flow


def test_a_source_reads_to_its_end_and_says_where_it_stands() -> None:
    with lone_worker(source_flow(ids=True)) as worker:
        worker.start("second", source=whole_order("0/1"))
        ended = worker.until(wire.ENDED)
        assert [item.index for item in worker.items()] == [*range(20)]
        assert ended["source"]["positions"]["0/1"]["ordinal"] == 20
        assert ended["source"]["done"]
        ids = [i for _, _, envelope in worker.out for i in envelope.ids or []]
        origin, first = origin_of("second", "0/1"), stream_code("second->two")
        assert ids == [(origin, n, first) for n in range(20)]


def test_a_source_that_cannot_be_read_is_fatal() -> None:
    with lone_worker(source_flow(ids=False)) as worker:
        worker.start("first", source=whole_order("0/2"))
        problem = worker.until(wire.FAILED)["failed"]["problem"]
        assert problem.startswith("reading the source raised AssertionError: flows are only declared here")
