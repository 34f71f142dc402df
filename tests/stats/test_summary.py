"""Reports to partial to global summaries: means over replicas, in any order the same."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.channel import ChannelMoments
from penstock.stats.moments import Moments
from penstock.stats.rates import InstanceRates
from penstock.stats.report import FEW_ENVELOPES, ChannelReport, ReplicaReport
from penstock.stats.summary import Average, merge_all, summarise, summarise_executors

RATES = InstanceRates(window_s=5.0, useful_s=3.0, processed=100, emitted=50)


def constant(value: float, count: int = 4) -> Moments:
    return Moments(count, value, 0.0)


TIMES = ChannelMoments(constant(8.0), constant(1.0), constant(2.0), constant(5.0))
moments = st.builds(Moments, st.integers(0, 100), st.floats(0.001, 1e3), st.floats(0, 1e6))
times = st.builds(ChannelMoments, moments, moments, moments, moments)


@st.composite
def everything_reported(draw: st.DrawFn) -> tuple[list[ReplicaReport], list[ChannelReport]]:
    replicas = [
        ReplicaReport(
            task=task,
            replica=number,
            rates=InstanceRates(
                window_s=5.0,
                useful_s=draw(st.floats(0, 5)),
                processed=draw(st.integers(0, 10**6)),
                emitted=draw(st.integers(0, 10**6)),
            ),
            service_ms=draw(moments),
            interarrival_ms=draw(moments),
            queue_wait_ms=draw(moments),
            latency_ms=draw(moments),
            cpu_s=draw(st.none() | st.floats(0, 5)),
            backlog=draw(st.none() | st.integers(0, 1000)),
            worker=draw(st.sampled_from([None, "e1", "e2"])),
            sent=draw(st.dictionaries(st.sampled_from([f"{task}->b", f"{task}->c"]), st.integers(0, 10**6))),
        )
        for task in ("a", "b")
        for number in range(draw(st.integers(0, 4)))
    ]
    channels = [
        ChannelReport(
            stream="a->b", sender=i, receiver=j, times=draw(times), worker=draw(st.sampled_from(["e1", "e2"]))
        )
        for i in range(draw(st.integers(0, 2)))
        for j in range(draw(st.integers(0, 2)))
    ]
    return replicas, channels


@given(everything_reported(), st.integers(0, 2**32))
def test_partial_summaries_merge_in_any_order_to_the_same_global_one(
    reported: tuple[list[ReplicaReport], list[ChannelReport]], seed: int
) -> None:
    replicas, channels = reported
    random = Random(seed)
    of_executors = summarise_executors(replicas, channels)
    assert set(of_executors) == {r.worker for r in replicas} | {c.worker for c in channels}
    partial = list(of_executors.values())
    random.shuffle(partial)
    random.shuffle(replicas)
    random.shuffle(channels)
    assert merge_all(partial) == summarise(replicas, channels)


def taking(service_ms: float, processed: int = 100) -> InstanceRates:
    return InstanceRates(
        window_s=5.0, useful_s=service_ms * processed / 1000, processed=processed, emitted=processed
    )


def test_every_replica_counts_once_however_many_items_it_had() -> None:
    busy = ReplicaReport(task="a", replica=0, rates=taking(1.0, 1000), service_ms=constant(1.0, 1000))
    idle = ReplicaReport(task="a", replica=1, rates=taking(3.0, 2), service_ms=constant(3.0, 2))
    assert summarise([busy, idle]).tasks["a"].service_ms.mean == 2.0


def test_what_no_replica_measured_is_unknown() -> None:
    task = summarise([ReplicaReport(task="a", replica=0, rates=RATES)]).tasks["a"]
    assert task.service_ms.mean is None
    assert task.cpu.mean is None
    assert task.backlog.sum is None
    assert task.processed.sum == 100


def test_utilization_is_service_over_interarrival_time() -> None:
    reports = [
        ReplicaReport(
            task="a",
            replica=i,
            rates=taking(s),
            service_ms=constant(s),
            interarrival_ms=constant(4.0),
            cpu_s=1.0,
        )
        for i, s in enumerate((1.0, 3.0))
    ]
    task = summarise(reports).tasks["a"]
    assert (task.utilization.mean, task.utilization.largest, task.cpu.mean) == (0.5, 0.75, 0.2)


def test_useful_time_stands_in_for_an_unknown_utilization() -> None:
    assert ReplicaReport(task="a", replica=0, rates=RATES).utilization == pytest.approx(0.6)


def test_a_few_large_envelopes_do_not_make_a_flood() -> None:
    """Two of 1,000 items within a millisecond, in an interval of 5 s: 400 items a second, not 2,000,000."""
    burst = Moments(2000, 0.0005, 0.0)
    report = ReplicaReport(
        task="a", replica=0, rates=taking(2.0), service_ms=constant(2.0), interarrival_ms=burst, envelopes=2
    )
    assert report.arrival_per_s == pytest.approx(400.0)
    assert report.utilization == pytest.approx(0.8)
    assert summarise([report]).tasks["a"].interarrival_ms.mean == pytest.approx(2.5)
    many = msgspec.structs.replace(report, envelopes=FEW_ENVELOPES)
    assert many.utilization == pytest.approx(1.6), "they may have waited for room and come together"
    crowd = msgspec.structs.replace(many, interarrival_ms=Moments(2000, 1.5, 0.0))
    assert crowd.utilization == pytest.approx(2.0 / 1.5), "many envelopes tell how much comes, be it too much"
    assert report.merged(many).envelopes == 2 + FEW_ENVELOPES
    slow = msgspec.structs.replace(report, interarrival_ms=Moments(1, 8000.0, 0.0), envelopes=1)
    assert slow.arrival_per_s == 0.125, "longer than the interval"


def test_nobody_is_busy_for_longer_than_there_is_time() -> None:
    rates = InstanceRates(window_s=1.0, useful_s=1.6, processed=1, emitted=1)
    assert ReplicaReport(task="a", replica=0, rates=rates).utilization == 1.0


def test_rates_follow_from_times() -> None:
    report = ReplicaReport(
        task="a", replica=0, rates=taking(2.0), service_ms=constant(2.0), interarrival_ms=constant(4.0)
    )
    assert (report.arrival_per_s, report.service_per_s) == (250.0, 500.0)
    assert ReplicaReport(task="a", replica=0, rates=RATES).arrival_per_s is None


def test_the_mean_service_time_is_that_of_all_items() -> None:
    """Of 1,000 items that took 0.07 ms each, the three timed ones say 0.5 ms: only their spread counts."""
    timed = Moments(3, 0.5, 0.5)
    report = ReplicaReport(task="a", replica=0, rates=taking(0.07, 1000), service_ms=timed)
    task = summarise([report]).tasks["a"]
    assert task.service_ms.mean == pytest.approx(0.07)
    assert task.service_cv.mean == pytest.approx(1.0)
    busier = ReplicaReport(task="a", replica=0, rates=taking(0.1, 2000), service_ms=timed)
    assert report.merged(busier).mean_service_ms == pytest.approx(0.09), "by items, not by reports"


def test_the_timed_items_of_an_unfinished_envelope_tell_the_service_time() -> None:
    unfinished = ReplicaReport(task="a", replica=0, rates=taking(0.0, 0), service_ms=constant(7.0, 2))
    assert unfinished.mean_service_ms == 7.0


def test_reports_of_one_replica_add_up() -> None:
    first = ReplicaReport(
        task="a",
        replica=0,
        rates=RATES,
        service_ms=constant(1.0, 1),
        cpu_s=1.0,
        backlog=9,
        worker="e1",
        sent={"a->b": 3, "a->c": 1},
    )
    second = ReplicaReport(
        task="a",
        replica=0,
        rates=RATES,
        service_ms=constant(4.0, 2),
        cpu_s=2.0,
        backlog=3,
        worker="e1",
        sent={"a->b": 4, "a->d": 5},
    )
    both = first.merged(second)
    assert both.service_ms.mean == 3.0
    assert (both.cpu_s, both.backlog, both.cpu, both.rates.processed) == (3.0, 3, 0.3, 200)
    assert both.sent == {"a->b": 7, "a->c": 1, "a->d": 5}


def test_what_all_replicas_put_into_a_stream_adds_up() -> None:
    sent = [{"a->b": 3, "a->c": 0}, {"a->b": 4, "a->c": 2}]
    reports = [ReplicaReport(task="a", replica=i, rates=RATES, sent=one) for i, one in enumerate(sent)]
    streams = summarise(reports, [ChannelReport(stream="a->b", sender=0, receiver=0, times=TIMES)]).streams
    assert {name: stream.emitted.sum for name, stream in streams.items()} == {"a->b": 7.0, "a->c": 2.0}
    assert streams["a->b"].latency_ms.mean == 8.0
    assert summarise([]).streams == {}


def test_an_average_of_nothing() -> None:
    assert Average().mean is None
    assert Average().sum is None
    assert Average().plus(None) == Average()
