"""Small recordings from the simulator, and histories made by hand."""

from collections.abc import Sequence
from pathlib import Path

from penstock.control.decision_log import Entry
from penstock.control.recording import Recorder
from penstock.policy.decision import Decision
from penstock.policy.registry import create_policy
from penstock.report.history import History
from penstock.sim.catalogue import find_workload
from penstock.sim.run import simulate
from penstock.stats.snapshot import ConstraintSpec, Snapshot, StreamStats, TaskStats
from tests.control.headers import HEADER


def simulated(path: Path, application: str, profile: str, policy: str, seconds: float) -> Path:
    with Recorder(path, HEADER) as recorder:
        simulate(
            find_workload(application, profile), create_policy(policy), seconds=seconds, recorder=recorder
        )
    return path


def snapshot(
    rate: float = 100.0,
    arrived: float = 500.0,
    *,
    wait_ms: float | None = 4.0,
    replicas: int = 2,
    busy: float = 0.6,
    p95_ms: float | None = None,
    emitted: float | None = None,
) -> Snapshot:
    """Five seconds of source -> work -> sink: 1 + 2 ms on the way, a queue, 1 ms of work; bound 10 ms."""
    stream_ms = None if wait_ms is None else 3.0 + wait_ms
    return Snapshot(
        interval_s=5,
        tasks={
            "source": TaskStats(kind="source", parallelism=1, rate_total=rate, emitted_total=5 * rate),
            "work": TaskStats(
                kind="task",
                parallelism=replicas,
                max=8,
                pool=4,
                elastic=True,
                service_ms=1.0,
                latency_ms=1.0,
                queue_wait_ms=wait_ms,
                utilization=busy,
                cpu=busy,
                processed_total=arrived,
                emitted_total=arrived if emitted is None else emitted,
            ),
            "sink": TaskStats(
                kind="sink", parallelism=1, processed_total=arrived if emitted is None else emitted
            ),
        },
        streams=[
            StreamStats(
                origin="source",
                receiver="work",
                latency_ms=stream_ms,
                output_batch_ms=1.0,
                batch_lifetime_ms=2.0,
            ),
            StreamStats(origin="work", receiver="sink"),
        ],
        constraints=[
            ConstraintSpec(name="c", sequence=["source->work", "work"], latency_ms=10, p95_ms=p95_ms)
        ],
        chains=[["work"], ["sink"]],
        cores_used=1.0,
        cores_leased=2.0,
    )


def history(*snapshots: Snapshot, decided: Sequence[Decision] = ()) -> History:
    entries = tuple(Entry(number=n, at_s=5.0 * n, decision=one) for n, one in enumerate(decided))
    return History("run", snapshots, entries)


def decision(replicas: int = 2, **changed: object) -> Decision:
    fields: dict[str, object] = {
        "policy": "by_hand",
        "parallelism": {"work": replicas},
        "batch_lifetime_ms": {},
        "chains": [],
        "feasible": True,
        "reasons": [],
    }
    return Decision(**{**fields, **changed})  # type: ignore[arg-type]
