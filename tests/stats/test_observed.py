"""From a flow and its summary to a snapshot."""

import msgspec
import pytest

from penstock.flow.graph import Constraint, Graph, Parallelism, Stream, Task
from penstock.stats.channel import ChannelMoments
from penstock.stats.moments import Moments
from penstock.stats.observed import observed
from penstock.stats.rates import InstanceRates
from penstock.stats.report import ChannelReport, ReplicaReport
from penstock.stats.snapshot import Snapshot, decode_snapshot, encode_snapshot
from penstock.stats.summary import Summary, summarise

FIXED, ELASTIC = Parallelism(1, 1, 1, 1), Parallelism(1, 8, 2, 8)
GRAPH = Graph(
    name="primes",
    ids=False,
    tasks=(
        Task("numbers", "source", "source", None, FIXED),
        Task("prime", "task", "map", None, ELASTIC),
        Task("found", "sink", "sink_function", None, FIXED, outputs=()),
    ),
    streams=(
        Stream("numbers->prime", "numbers", "out", "prime"),
        Stream("prime.hits->found", "prime", "hits", "found"),
    ),
    constraints=(Constraint("c1", ("numbers->prime", "prime", "prime.hits->found"), 20.0),),
)


def snapshot_of(summary: Summary) -> Snapshot:
    return observed(
        GRAPH,
        summary,
        interval_s=5.0,
        active={"numbers": 1, "prime": 2, "found": 1},
        lifetimes_ms={"numbers->prime": 2.0},
    )


def report(task: str, replica: int, **measured: Moments) -> ReplicaReport:
    rates = InstanceRates(window_s=5.0, useful_s=0.2, processed=100, emitted=50)
    return ReplicaReport(task=task, replica=replica, rates=rates, worker="e1", backlog=4, **measured)  # type: ignore[arg-type]


def test_what_was_measured_is_in_the_snapshot() -> None:
    values = Moments(4, 2.0, 3.0)
    channel = ChannelReport(
        stream="numbers->prime", sender=0, receiver=0, times=ChannelMoments(values, Moments(4, 1.0, 0.0))
    )
    replicas = [
        report("numbers", 0),
        *(report("prime", i, service_ms=values, interarrival_ms=Moments(4, 4.0, 0.0)) for i in range(2)),
    ]
    snapshot = snapshot_of(summarise(replicas, [channel]))
    prime = snapshot.tasks["prime"]
    assert (prime.parallelism, prime.min, prime.max, prime.elastic) == (2, 1, 8, True)
    assert (prime.service_ms, prime.utilization) == (2.0, 0.5)
    assert prime.service_cv == pytest.approx(0.5)
    assert (prime.processed_total, prime.useful_s, prime.backlog_total) == (200, 0.2, 8)
    assert prime.instances is not None
    assert len(prime.instances) == 2
    assert prime.worker == ["e1", "e1"]
    assert snapshot.tasks["numbers"].rate_total == 20.0
    stream = snapshot.stream("numbers->prime")
    assert (stream.latency_ms, stream.output_batch_ms, stream.batch_lifetime_ms) == (2.0, 1.0, 2.0)
    assert snapshot.stream("prime.hits->found").sender == "prime"
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


def test_what_was_not_reported_is_absent() -> None:
    snapshot = snapshot_of(Summary())
    prime = snapshot.tasks["prime"]
    assert (prime.service_ms, prime.utilization, prime.instances, prime.processed_total) == (None,) * 4
    assert snapshot.streams[1].batch_lifetime_ms is None
    assert b"null" not in encode_snapshot(snapshot)


def test_the_rate_of_a_source_is_what_is_due_from_it() -> None:
    sent = report("numbers", 0)
    assert snapshot_of(summarise([sent])).tasks["numbers"].rate_total == 100 / 5.0
    held_back = msgspec.structs.replace(sent, due_s=2.0)
    assert snapshot_of(summarise([held_back])).tasks["numbers"].rate_total == 100 / 2.0
    other = msgspec.structs.replace(held_back, replica=1)
    assert snapshot_of(summarise([held_back, other])).tasks["numbers"].rate_total == 2 * 100 / 2.0
    unknown = msgspec.structs.replace(sent, replica=1)
    assert snapshot_of(summarise([held_back, unknown])).tasks["numbers"].rate_total == 2 * 100 / 5.0
