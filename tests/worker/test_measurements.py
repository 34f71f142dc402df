"""What a worker times: chained tasks share the time of an envelope, items of timers count as others do."""

import time
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from penstock.flow import Flow
from penstock.flow.graph import Graph
from penstock.stats.clock_offset import Exchange
from penstock.wire.envelope import Envelope, Tag
from penstock.wire.reports import Report
from penstock.worker.flow_time import UNKNOWN_NS
from penstock.worker.measurements import Measurements, process_report
from penstock.worker.outbox import Outbox, OutStream
from tests.flow.random_flows import Partitioned, ignore


def graph() -> Graph:
    flow = Flow("two")
    source = flow.source(Partitioned(1), name="source")
    source.map(abs, name="a").forward().map(abs, name="b").sink(ignore, name="sink")
    return flow.graph()


GRAPH = graph()
OUTBOX = Outbox(lambda _: None, 0, with_ids=False)
LINK = OutStream(OUTBOX, GRAPH.stream("a->b"), 1)


def measurements(task: str) -> Measurements:
    failures: Any = SimpleNamespace(skipped=0, dead_lettered=0)
    OUTBOX.time.learn(Exchange(0, 0, 0, 0))
    return Measurements(GRAPH, task, 0, [], failures, OUTBOX)


def useful_s(envelope_ns: int) -> tuple[float, float]:
    """Of a task whose envelope took so long, and of one chained to it that had its three items."""
    head, chained = measurements("a"), measurements("b")
    head.envelope_done(Envelope(0, 0, 0, [1, 2, 3], None, []), 0, envelope_ns)
    for item in range(3):
        chained.time_chained(LINK, 0, lambda _: cast("None", sum(range(2000))), item)
    report = msgspec.json.decode(process_report([head, chained]), type=Report)
    assert report.interval is not None
    assert report.chained[0].interval is not None
    return report.interval.rates.useful_s, report.chained[0].interval.rates.useful_s


def test_chained_tasks_never_get_more_than_there_is() -> None:
    assert useful_s(100) == (0.0, 1e-7)
    own_s, chained_s = useful_s(10_000_000_000)
    assert 0 < chained_s < own_s
    assert own_s + chained_s == 10.0


def test_a_chained_task_gets_its_part_of_timers() -> None:
    head, chained = measurements("a"), measurements("b")
    head.timer_ran(5_000_000)
    chained.chained_timer_ran(2_000_000)
    report = msgspec.json.decode(process_report([head, chained]), type=Report)
    assert report.interval is not None
    assert report.chained[0].interval is not None
    assert (report.interval.rates.useful_s, report.chained[0].interval.rates.useful_s) == (0.003, 0.002)


def test_items_of_timers_which_are_all_timed_count_as_those_that_are_timed_by_a_share() -> None:
    task = measurements("b")
    tweets = Envelope(0, 0, 1, [0.004] * 100, None, [])
    lists = Envelope(0, 0, 1, [0.0] * 20, None, [])
    for envelope, origin_ns, timed in ((tweets, 1, 10), (lists, UNKNOWN_NS, 20)):
        for item in envelope.items[:timed]:
            task.time_item(envelope, Tag(0, 1, origin_ns), 1, time.sleep, item)
        task.envelope_done(envelope, 0, 1)
    report = task.report()
    # Sleeps may be longer than they should, never shorter; counted one by one, the mean would be 4 / 3.
    assert report["interval"].service_ms.mean >= 4 * 100 / 120
    assert report["interval"].service_ms.count == 12
    assert report["channels"][0].times.latency_ms.count == 30, "all of them tell how long streams take"


def test_what_a_source_has_sent_is_not_behind_any_more() -> None:
    source = measurements("source")

    def told() -> tuple[float, float | None]:
        report = msgspec.json.decode(process_report([source]), type=Report)
        assert report.interval is not None
        return report.interval.rates.processed, report.interval.lag_items

    source.source_read(5, 1000)
    assert told() == (5, None)
    source.lag_items = 10
    source.source_read(3, 1000)
    assert told() == (3, 7)
    source.source_read(9, 1000)
    assert told() == (9, 0), "more has come since the last look"
