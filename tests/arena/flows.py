"""Small flows for the arena's tests."""

import itertools

from penstock.sim.distributions import Gamma
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

COSTS = Costs(transport_s=0.5e-3)
INTERVAL_S = 2.0


def row(
    *levels: float,
    services_ms: tuple[float, ...] = (20.0,),
    bound_ms: float = 60.0,
    most: int = 3,
    restart_s: float | None = None,
) -> FlowModel:
    """Tasks in a row, one rate in items/s for each interval of two seconds."""
    names = ["source", *(f"task{n}" for n in range(1, len(services_ms) + 1)), "sink"]
    tasks = (
        TaskModel("source", "source", load=Curve.steps([(INTERVAL_S, rate) for rate in levels]), site="in"),
        *(
            TaskModel(
                name,
                minimum=1,
                maximum=most,
                service_s=service_ms / 1000.0,
                service=Gamma(0.5),
                site=name,
                per_worker=8,
            )
            for name, service_ms in zip(names[1:-1], services_ms, strict=True)
        ),
        TaskModel("sink", "sink", site="out"),
    )
    hops = list(itertools.pairwise(names))
    sequence = [element for a, b in hops for element in (f"{a}->{b}", b)][:-1]
    return FlowModel(
        "row",
        tasks,
        tuple(StreamModel(a, b, costs=COSTS) for a, b in hops),
        (ConstraintSpec(name="all", sequence=sequence, latency_ms=bound_ms, window_s=INTERVAL_S),),
        ClusterModel(cores_per_worker=8.0, restart_s=restart_s),
        interval_s=INTERVAL_S,
        step_s=INTERVAL_S,
        seconds=INTERVAL_S * len(levels),
    )
