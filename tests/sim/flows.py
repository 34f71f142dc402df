"""Small flow models for the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.policy.decision import Decision
from penstock.sim.distributions import Deterministic, Distribution, Exponential
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec, Snapshot

if TYPE_CHECKING:
    from penstock.sim.engine import SimulatedEngine

SEQUENCE = ["source->work", "work", "work->sink"]


def pipeline(
    *,
    rate: float = 100.0,
    sources: int = 2,
    replicas: int = 3,
    service_s: float = 0.01,
    service: Distribution | None = None,
    gaps: Distribution | None = None,
    lifetime_ms: float = 0.0,
    limit_items: int | None = None,
    costs: Costs | None = None,
    cluster: ClusterModel | None = None,
    step_s: float = 1.0,
    work: dict[str, Any] | None = None,
    stream: dict[str, Any] | None = None,
) -> FlowModel:
    """Source, work, sink; `work` and `stream` override fields of the task and of its input stream."""
    costs = Costs() if costs is None else costs
    task = TaskModel(
        "work",
        replicas=replicas,
        minimum=1,
        maximum=50,
        service_s=service_s,
        service=service or Deterministic(),
        per_worker=100,
    )
    first = StreamModel("source", "work", lifetime_ms=lifetime_ms, limit_items=limit_items, costs=costs)
    return FlowModel(
        "pipeline",
        (
            TaskModel(
                "source", "source", sources, load=Curve.constant(rate), gaps=gaps or Exponential(), site="in"
            ),
            replace(task, **(work or {})),
            TaskModel("sink", "sink", 2, site="out"),
        ),
        (
            replace(first, **(stream or {})),
            StreamModel("work", "sink", lifetime_ms=lifetime_ms, limit_items=limit_items, costs=costs),
        ),
        (ConstraintSpec(name="c", sequence=SEQUENCE, latency_ms=20.0, window_s=5.0),),
        cluster or ClusterModel(cores_per_worker=1000.0),
        step_s=step_s,
    )


def decision(**changes: Any) -> Decision:
    """A decision that changes what is named."""
    fields: dict[str, Any] = {
        "policy": "test",
        "parallelism": {},
        "batch_lifetime_ms": {},
        "chains": [],
        "feasible": True,
        "reasons": [],
    }
    return Decision(**{**fields, **changes})


def observed(engine: SimulatedEngine) -> Snapshot:
    """The next snapshot, which must exist."""
    snapshot = engine.observe()
    assert snapshot is not None
    return snapshot
