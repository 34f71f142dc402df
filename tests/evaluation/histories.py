"""Recordings of applications made by hand: intervals of two seconds, source -> tasks in a row -> sink."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from penstock.control.recording import Recorder
from penstock.report.history import History
from penstock.stats.snapshot import ConstraintSpec, Snapshot, StreamStats, TaskStats
from tests.control.headers import HEADER

INTERVAL_S = 2.0


def interval(
    replicas: Mapping[str, int],
    *,
    rate: float = 100.0,
    latency_ms: float | None = 10.0,
    bounds_ms: Mapping[str, float] | None = None,
    chains: Sequence[list[str]] = (),
    cores: float = 1.0,
) -> Snapshot:
    """Constraint number k is over stream and task number k, and all of its latency is in the stream."""
    bounds = dict(bounds_ms or {"all": 20.0})
    names = ["source", *replicas, "sink"]
    items = rate * INTERVAL_S
    tasks = {
        name: TaskStats(
            kind="source" if name == "source" else "sink" if name == "sink" else "task",
            parallelism=replicas.get(name, 1),
            elastic=name in replicas,
            max=40 if name in replicas else None,
            rate_total=rate if name == "source" else None,
            processed_total=None if name == "source" else items,
            emitted_total=None if name == "sink" else items,
            utilization=0.5,
            latency_ms=None if name == "source" else 0.0,
        )
        for name in names
    }
    streams = [StreamStats(origin=a, receiver=b, latency_ms=latency_ms) for a, b in pairwise(names)]
    return Snapshot(
        interval_s=INTERVAL_S,
        tasks=tasks,
        streams=streams,
        constraints=[
            ConstraintSpec(name=name, sequence=[stream.name, stream.receiver], latency_ms=bound)
            for stream, (name, bound) in zip(streams, bounds.items(), strict=False)
        ],
        chains=list(chains),
        cores_used=cores,
        cores_leased=2.0,
    )


def history(snapshots: Sequence[Snapshot]) -> History:
    return History("run", tuple(snapshots))


def record(path: Path, snapshots: Sequence[Snapshot]) -> None:
    with Recorder(path, HEADER) as recorder:
        for number, one in enumerate(snapshots):
            recorder.write_snapshot(one, at_s=float(number))
