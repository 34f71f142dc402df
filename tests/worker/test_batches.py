"""A worker whose task takes lists: what it is given at once, what it times, how it goes carefully."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.flow import Flow
from penstock.stats.report import ReplicaReport
from penstock.wire import frames as wire
from penstock.wire.envelope import Tag
from penstock.wire.orders import Verdict
from penstock.wire.reports import Report
from tests.flow.random_flows import Partitioned, ignore
from tests.worker.lone_worker import LoneWorker, lone_worker


def with_size(items: list[Any]) -> list[tuple[Any, int]]:
    return [(item, len(items)) for item in items]


def slow(items: list[Any]) -> list[Any]:
    time.sleep(0.04)
    return items


def flow(body: Callable[[list[Any]], list[Any]] = with_size, lifetime: str = "0 ms", **options: Any) -> Flow:
    made = Flow("lists", ids=options.pop("ids", False))
    task = made.source(Partitioned(1), name="source").map_batches(body, name="task", **options)
    task.batched(lifetime).sink(ignore, name="sink")
    return made


def test_envelopes_at_hand_are_one_batch_and_its_results_travel_together() -> None:
    with lone_worker(flow()) as worker:
        with worker.together():
            worker.start("task")
            for sequence, items in enumerate([["a"], ["b", "c"], ["d"]], start=1):
                worker.give(sequence, items)
        report = worker.end()
        assert [envelope.items for _, _, envelope in worker.out] == [[(item, 4) for item in "abcd"]]
        assert worker.acknowledged == 3
        assert (report["worker"]["items_in"], report["worker"]["items_out"]) == (4, 4)
        assert report["interval"]["envelopes"] == 3


def test_a_batch_is_never_larger_than_its_size() -> None:
    with lone_worker(flow(size=3)) as worker:
        with worker.together():
            worker.start("task")
            for sequence in range(1, 5):
                worker.give(sequence, [sequence] * 2)
        worker.end()
        # Two envelopes make more than a batch: three items, then what is left of them.
        assert [size for _, size in worker.items()] == [3, 3, 3, 1] * 2
        assert worker.acknowledged == 4


def test_inputs_are_acknowledged_when_nothing_of_their_batch_waits() -> None:
    with lone_worker(flow(lifetime="10 min")) as worker:
        worker.start("task")
        worker.give(1, ["a"])
        worker.give(2, ["b"])
        worker.change(measure_every_s=0.01)
        worker.until_heard()
        while worker.next_report()["worker"]["items_in"] < 2:
            pass
        assert (worker.acknowledged, worker.out) == (0, [])
        worker.end()
        assert worker.acknowledged == 2


Timed = tuple[Report, LoneWorker]


def timed_run(made: Flow, head: str, chains: list[list[str]] | None = None) -> Timed:
    """Four items, two of them tagged; the report."""
    with lone_worker(made) as worker:
        tags = [Tag(1, time.monotonic_ns(), 70), Tag(3, time.monotonic_ns(), 90)]
        if chains is not None:
            worker.switches = msgspec.structs.replace(worker.switches, chains=chains)
            worker.start(head)
            worker.until(wire.JOIN)
            worker.tell(wire.frame(wire.JOINED))
        else:
            worker.start(head)
        worker.give(1, [0, 1, 2, 3], tags=tags)
        return msgspec.convert(worker.end(), Report), worker


def interval_of(report: Report) -> ReplicaReport:
    assert report.interval is not None
    return report.interval


def means_ms(report: Report) -> tuple[float, float]:
    """Of service times and latencies."""
    service_ms, latency_ms = interval_of(report).service_ms, interval_of(report).latency_ms
    assert (service_ms.count, latency_ms.count) == (2, 2), "two items were tagged"
    assert service_ms.mean is not None
    assert latency_ms.mean is not None
    return service_ms.mean, latency_ms.mean


def test_the_service_time_of_an_item_is_its_part_of_the_batch_and_its_latency_all_of_it() -> None:
    report, worker = timed_run(flow(slow), "task")
    service_ms, latency_ms = means_ms(report)
    assert latency_ms >= 40
    assert service_ms == pytest.approx(latency_ms / 4)
    ((_, _, envelope),) = worker.out
    assert [(tag.item, tag.origin_ns) for tag in envelope.tags] == [(1, 70), (3, 90)]
    assert envelope.items == [0, 1, 2, 3]


def pipe() -> Flow:
    made = Flow("pipe")
    first = made.source(Partitioned(1), name="source").map(abs, name="first")
    lists = first.forward().map_batches(slow, name="lists")
    lists.forward().map(abs, name="last").sink(ignore, name="sink")
    return made


def test_a_chained_list_is_what_came_of_an_envelope_and_its_time_is_its_own() -> None:
    report, worker = timed_run(pipe(), "first", [["first", "lists", "last"]])
    lists, last = report.chained
    assert [one.worker and one.worker.items_in for one in (report, lists, last)] == [4, 4, 4]
    service_ms, latency_ms = means_ms(lists)
    assert latency_ms >= 40
    assert service_ms == pytest.approx(latency_ms / 4)
    for other in (report, last):
        assert means_ms(other)[1] < 40, "the time of the list is not theirs"
    assert interval_of(lists).rates.useful_s >= 0.04
    assert interval_of(report).rates.useful_s < 0.04
    assert worker.items() == [0, 1, 2, 3]
    assert [tag.origin_ns for _, _, envelope in worker.out for tag in envelope.tags] == [70, 90]


def test_carefully_means_item_by_item() -> None:
    with lone_worker(flow(on_error="skip", ids=True)) as worker:
        worker.start("task")
        worker.give(
            1,
            ["a", "b", "c", "d"],
            ids=[(7, n) for n in range(4)],
            careful=True,
            first=1,
            verdicts={2: Verdict("task", "it kills")},
        )
        worker.give(2, ["e"], ids=[(7, 4)])
        worker.give(3, ["f"], ids=[(7, 5)])
        report = worker.end()
        assert worker.items()[:2] == [("b", 1), ("d", 1)]
        assert [item for item, _ in worker.items()] == ["b", "d", "e", "f"]
        assert worker.at == [(1, 1), (1, 2), (1, 3)]
        assert (report["worker"]["skipped"], worker.acknowledged) == (1, 3)


@pytest.mark.parametrize("careful", [False, True])
def test_an_error_with_fail_ends_the_flow(careful: bool) -> None:
    def broken(items: list[Any]) -> list[Any]:
        raise KeyError("x")

    with lone_worker(flow(broken)) as worker:
        worker.start("task")
        worker.give(1, ["a", "b"], careful=careful)
        problem = worker.until(wire.FAILED)["failed"]["problem"]
        assert problem.startswith(
            "KeyError: 'x'\n" + ("item: 'a'" if careful else "batch of 2 items: ['a', 'b']")
        )


def rows(batches: list[Any]) -> list[list[int]]:
    return [batch.column(0).to_pylist() for batch in batches]


def test_record_batches_of_several_envelopes_are_one_batch() -> None:
    pa = pytest.importorskip("pyarrow")
    made = Flow("columns")
    columns = made.source(Partitioned(1), name="source").coded("arrow")
    columns.map_batches(rows, name="task").sink(ignore, name="sink")
    given = [pa.RecordBatch.from_pydict({"n": [*range(start, start + 1000)]}) for start in (0, 5000, 9000)]
    with lone_worker(made) as worker:
        with worker.together():
            worker.start("task")
            for sequence, batch in enumerate(given, start=1):
                worker.give(sequence, [batch])
        worker.end()
        assert worker.items() == [batch.column(0).to_pylist() for batch in given]


class Odd:
    """A codec that cannot read even numbers."""

    def dumps(self, item: int) -> bytes:
        return b"%d" % item

    def loads(self, data: bytes) -> int:
        if int(data) % 2 == 0:
            raise ValueError("even")
        return int(data)


@pytest.mark.parametrize("careful", [False, True])
def test_items_that_cannot_be_read_are_put_aside_and_the_others_are_a_batch(
    careful: bool, tmp_path: Path
) -> None:
    made = Flow("odd", ids=True)
    odd = made.source(Partitioned(1), name="source").coded(Odd())
    odd.map_batches(with_size, name="task", on_error="dead_letter").sink(ignore, name="sink")
    with lone_worker(made, str(tmp_path)) as worker:
        worker.start("task")
        ids: list[Any] = [(0, number) for number in range(5)]
        worker.give(1, [1, 2, 3, 4, 5], tags=[Tag(1, 1, 1), Tag(4, 1, 1)], ids=ids, careful=careful)
        report = worker.end()
        assert worker.items() == [(item, 1 if careful else 3) for item in (1, 3, 5)]
        assert [one[:2] for _, _, envelope in worker.out for one in envelope.ids or [] if one] == [
            (0, 0),
            (0, 2),
            (0, 4),
        ]
        assert report["worker"]["dead_lettered"] == 2
