"""A replica's reporter, driven by hand."""

from penstock.stats.baseline import SAMPLES
from penstock.stats.moments import Moments
from penstock.stats.replica_reporter import ReplicaReporter
from penstock.stats.snapshot_structs import LatencyKind

MS = 1_000_000


def reporter(kind: LatencyKind = "read_ready") -> ReplicaReporter:
    return ReplicaReporter("prime", 2, latency_kind=kind)


def work(replica: ReplicaReporter, start: int) -> None:
    """Two items in one envelope arrive at `start`, take 1 ms and 3 ms, and one is emitted at the end.

    Reading the envelope takes 1 ms more.
    """
    replica.arrived(start * MS, items=2)
    replica.read((start + 2) * MS)
    replica.read((start + 3) * MS)
    replica.wrote((start + 6) * MS)
    replica.served([1 * MS, 3 * MS], waited_ns=[2 * MS, 3 * MS])
    replica.worked(5 * MS, processed=2, emitted=1)


def test_a_report_of_everything() -> None:
    replica = reporter()
    work(replica, 0)
    work(replica, 10)
    report = replica.report(5.0, cpu_s=0.5, backlog=7)
    assert (report.task, report.replica) == ("prime", 2)
    assert (report.service_ms.mean, report.mean_service_ms) == (2.0, 2.5)
    assert report.latency_ms == report.service_ms
    assert (report.interarrival_ms.count, report.envelopes) == (3, 2)
    assert report.queue_wait_ms == Moments(4, 2.5, 1.0)
    assert (report.rates.processed, report.rates.emitted, report.rates.useful_s) == (4, 2, 0.01)
    assert (report.cpu, report.backlog) == (0.1, 7)
    assert report.baseline_service_ms is None


def test_a_task_that_gathers_reports_read_write_latency() -> None:
    replica = reporter("read_write")
    work(replica, 0)
    report = replica.report(5.0)
    assert report.service_ms.mean == 2.0
    assert report.latency_ms.mean == 3.5


def test_items_that_were_in_the_task_together_took_longer_than_they_kept_it_busy() -> None:
    replica = reporter()
    replica.served([1 * MS, 1 * MS], [0, 0], [4 * MS, 4 * MS])
    report = replica.report(5.0)
    assert (report.service_ms.mean, report.latency_ms.mean) == (1.0, 4.0)
    assert replica.report(5.0).latency_ms.count == 0


def test_every_report_begins_anew() -> None:
    replica = reporter()
    work(replica, 0)
    replica.report(5.0)
    empty = replica.report(5.0)
    assert (empty.service_ms.mean, empty.queue_wait_ms.mean, empty.rates.processed) == (None, None, 0)


def test_the_baseline_comes_from_the_first_reports() -> None:
    replica = reporter()
    for interval in range(SAMPLES):
        work(replica, 100 * interval)
        report = replica.report(5.0)
    assert report.baseline_service_ms == 2.5


def test_a_source_reports_its_lag() -> None:
    source = reporter()
    source.lagged([2 * MS, -1])
    source.worked(5 * MS, processed=2, emitted=2)
    report = source.report(5.0)
    assert report.lag_ms == Moments(2, 1.0, 2.0)
    assert report.latency_ms.mean is None
    assert source.report(5.0).lag_ms.mean is None


def test_a_source_reports_what_is_due_from_it() -> None:
    reporter = ReplicaReporter("numbers", 0, latency_kind="read_ready")
    reporter.due_between(1_000_000_000, 1_000_000_000)
    reporter.worked(0, 1, 1)
    first = reporter.report(1.0)
    assert first.due_per_s is None, "one item tells of no rate"
    reporter.due_between(1_025_000_000, 1_500_000_000)
    reporter.worked(0, 20, 40)  # every item leaves on two streams
    held_back = reporter.report(1.0)
    assert (held_back.due_s, held_back.due_per_s) == (0.5, 40.0)
    assert reporter.report(1.0).due_per_s is None
    reporter.due_between(1_525_000_000, 3_500_000_000)
    reporter.worked(0, 80, 80)
    caught_up = reporter.report(1.0)
    assert held_back.merged(caught_up).due_per_s == 40.0


def test_a_source_that_has_just_begun_tells_its_rate() -> None:
    reporter = ReplicaReporter("numbers", 0, latency_kind="read_ready")
    nothing_yet = reporter.report(0.1)
    reporter.due_between(2_000_000_000, 2_100_000_000)
    reporter.worked(0, 101, 101)
    reporter.due_between(2_101_000_000, 2_500_000_000)
    reporter.worked(0, 400, 400)
    begun = reporter.report(5.0)
    assert begun.due_per_s == 501 / 0.5
    assert nothing_yet.due_per_s is None
    assert nothing_yet.merged(begun).due_per_s == begun.due_per_s
