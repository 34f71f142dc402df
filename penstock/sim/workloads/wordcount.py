"""Word count with rate-limited tasks: Dhalion's benchmark and DS2's runs of it (OSDI 2018, 5.2 and 5.3).

Heron: 1M sentences/min; a FlatMap replica takes 100k sentences/min, a Count replica 1M words/min, 20 words a
sentence, so the optimum is 10 and 20. Flink: two phases of 2M and then 1M sentences/s, from 10 and 5
replicas; there the capacities are those that make 20 and 11 replicas just enough. All rates are divided, by
10 and by 1,000: queues of rate-limited tasks look the same on a slower clock, and there is less to simulate.
The source is a generator: what back-pressure keeps it from emitting is never made. Replicas are 1 % faster
than the nominal limits, because exactly 10 x 100k = 1M leaves no room for a single item more.
"""

from __future__ import annotations

from penstock.sim.distributions import Deterministic
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

WORDS = 20
SEQUENCE = ["source->flat_map", "flat_map", "flat_map->count", "count"]
LIFETIME_MS = 10.0
COSTS = Costs(transport_s=0.5e-3)


def heron(seconds: float = 2_400.0, restart_s: float | None = 20.0) -> FlowModel:
    """One replica each at the start; every change of parallelism restarts the topology."""
    return _model(
        load=Curve.constant(1e5 / 60.0),
        flat_map=(1, 0.99 * 60.0 / 1e4),
        count=(1, 0.99 * 60.0 / 1e5),
        seconds=seconds,
        interval_s=10.0,
        restart_s=restart_s,
    )


def flink(restart_s: float = 30.0) -> FlowModel:
    """Two phases of 800 s and 600 s; a change takes a savepoint and a restart."""
    load = Curve.steps([(800.0, 2_000.0), (600.0, 1_000.0)])
    flat_map_s, count_s = 19.5 / 2_000.0, 10.7 / (2_000.0 * WORDS)
    return _model(
        load=load,
        flat_map=(10, flat_map_s),
        count=(5, count_s),
        seconds=1_400.0,
        interval_s=10.0,
        restart_s=restart_s,
    )


def _model(
    load: Curve,
    flat_map: tuple[int, float],
    count: tuple[int, float],
    seconds: float,
    interval_s: float,
    restart_s: float | None,
) -> FlowModel:
    tasks = (
        TaskModel("source", "source", 1, load=load, gaps=Deterministic(), catches_up=False, site="source"),
        TaskModel(
            "flat_map",
            replicas=flat_map[0],
            minimum=1,
            maximum=60,
            service_s=flat_map[1],
            queue_items=500,
            site="flat_map",
            per_worker=16,
        ),
        TaskModel(
            "count",
            "sink",
            replicas=count[0],
            minimum=1,
            maximum=60,
            service_s=count[1],
            queue_items=10_000,
            site="count",
            per_worker=16,
        ),
    )
    streams = (
        StreamModel("source", "flat_map", lifetime_ms=LIFETIME_MS, costs=COSTS),
        StreamModel("flat_map", "count", lifetime_ms=LIFETIME_MS, ratio=Curve.constant(WORDS), costs=COSTS),
    )
    constraint = ConstraintSpec(name="words", sequence=SEQUENCE, latency_ms=100.0, window_s=interval_s)
    cluster = ClusterModel(cores_per_worker=16.0, restart_s=restart_s)
    return FlowModel(
        "wordcount",
        tasks,
        streams,
        (constraint,),
        cluster,
        interval_s=interval_s,
        step_s=0.25,
        seconds=seconds,
    )
