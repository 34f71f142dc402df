"""Useful time of calls at the same time: the share of the capacity that they took."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.rates import InstanceRates
from penstock.stats.replica_reporter import ReplicaReporter
from penstock.worker.slot_time import SlotTime

S_NS = 100_000_000


def after_calls(concurrency: int, gap_ns: int, count: int) -> tuple[SlotTime, int]:
    """Calls of 100 ms, one every `gap_ns`, each as soon as there is room for it; and when all are over."""
    slots, ends, now_ns = SlotTime(concurrency), list[int](), 1
    for call in range(count):
        now_ns = max(now_ns, call * gap_ns)
        while ends and (ends[0] <= now_ns or len(ends) == concurrency):
            now_ns = max(now_ns, ends[0])
            slots.closed(ends.pop(0))
        slots.opened(now_ns)
        ends.append(now_ns + S_NS)
    for end_ns in ends:
        slots.closed(now_ns := end_ns)
    return slots, now_ns


@given(st.integers(1, 50), st.integers(0, 200_000_000), st.integers(1, 200))
def test_capacity_is_that_of_all_calls_at_once_however_few_there_are(
    concurrency: int, gap_ns: int, count: int
) -> None:
    slots, end_ns = after_calls(concurrency, gap_ns, count)
    useful_s = slots.useful_ns(end_ns) / 1e9
    rates = InstanceRates(window_s=end_ns / 1e9, useful_s=useful_s, processed=slots.done, emitted=0)
    assert slots.done == count
    assert rates.true_processing_per_s == pytest.approx(concurrency / 0.1, rel=1e-6)
    assert useful_s <= rates.window_s + 1e-9


def test_utilisation_is_the_mean_number_of_open_calls_over_the_concurrency() -> None:
    slots = SlotTime(4)
    slots.opened(100)
    slots.opened(200)
    assert slots.useful_ns(300) == (100 + 200) // 4, "calls that are open count already"
    slots.closed(300)
    slots.closed(400)
    assert slots.useful_ns(900) == (100 + 200 + 100) // 4
    assert (slots.open, slots.done) == (0, 2)


def test_the_service_time_is_a_share_and_the_latency_all_of_it() -> None:
    reporter = ReplicaReporter("fetch", 0, latency_kind="read_ready", concurrency=20)
    reporter.served([100_000_000, 140_000_000], [0, 0])
    reporter.worked(12_000_000, 2, 0)
    report = reporter.report(1.0)
    assert report.service_ms.mean == pytest.approx(6.0)
    assert report.latency_ms.mean == pytest.approx(120.0)
    assert report.mean_service_ms == pytest.approx(6.0)
    assert report.service_ms.cv == pytest.approx(report.latency_ms.cv)
