"""PrimeTest: random numbers, a prime test, a sink; small items at high rates (thesis, section 5.1.2).

The constants are read off the thesis' own figures, once, and are the same in every run:

- Service. With 200 testers and 50 sources the throughput peaks at 63k items/s a source when 16 KiB buffers
  make shipping nearly free (section 4.6): 200 / (50 x 63,000) s = 63.5 us, of which about 1 us is shipping.
- Shipping. With immediate shipping the last rate without a bottleneck is 40k (section 5.2.3), so an item
  takes between 89 and 100 us; less the service that is about 33 us for receiving one envelope and sending
  another. Sending is the dearer half (a system call for each envelope, while a read returns many): 24 us,
  which also makes a source that ships at once I/O-bound just above 40k, as the thesis found.
- Size. At 80k items/s a source and 175 testers a channel carries 457 items/s, and two hops of filling 16 KiB
  buffers take 348 ms (section 5.3.1): 159 items in a buffer, 103 bytes each.
- Replicas start 1-2 s after the decision (ICDCS 2015, section V). Machines: 4 cores with hyper-threading.
- Testers: at most 392 (section 5.3.1), four to a server: with those of the 32 sources that is the 130 servers
  of the thesis. The ICDCS paper lets them grow to 520.
"""

from __future__ import annotations

import math

from penstock.sim.distributions import LogNormal, ShiftedExponential
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

SOURCES = 32
MOST_TESTERS = 392
STEP_S = 60.0
BUFFER_ITEMS = 159
SERVICE_S = 62e-6
COSTS = Costs(
    send_envelope_s=24e-6,
    send_item_s=0.3e-6,
    receive_envelope_s=9e-6,
    receive_item_s=0.3e-6,
    transport_s=0.3e-3,
)
CLUSTER = ClusterModel(cores_per_worker=4.0, threads_per_core=1.3, replica_start_s=1.5)
SEQUENCE = ["source->tester", "tester", "tester->sink"]


def staircase(sources: int, lowest: float, highest: float, step: float, step_s: float) -> Curve:
    """Total rate: warm-up, increments, one plateau step, decrements back to the warm-up rate."""
    up = [lowest + step * k for k in range(round((highest - lowest) / step) + 1)]
    return Curve.steps([(step_s, sources * rate) for rate in [*up, highest, *up[-2::-1]]])


def elastic(constraint_ms: float = 20.0, *, share: float = 1.0, step_s: float = STEP_S) -> FlowModel:
    """The elastic run of section 5.3.1; a `share` below 1 is the same run with fewer sources and testers."""
    sources = max(1, round(SOURCES * share))
    load = staircase(sources, 10_000, 80_000, 10_000, step_s)
    tasks = (
        TaskModel("source", "source", sources, load=load, site="source", per_worker=1),
        _tester(replicas=max(2, round(64 * share)), minimum=1, maximum=max(4, round(MOST_TESTERS * share))),
        TaskModel("sink", "sink", sources, service_s=0.5e-6, site="worker", per_worker=1),
    )
    return _flow("primetest", tasks, constraint_ms, load.from_s[-1] + step_s, limit_items=BUFFER_ITEMS)


def unelastic(testers: int = 175) -> FlowModel:
    """The baseline of section 5.3.1: buffers of 16 KiB, shipped only when full, a fixed number of testers."""
    load = staircase(SOURCES, 10_000, 80_000, 10_000, STEP_S)
    tasks = (
        TaskModel("source", "source", SOURCES, load=load, site="worker", per_worker=1),
        _tester(replicas=testers),
        TaskModel("sink", "sink", SOURCES, service_s=0.5e-6, site="worker", per_worker=1),
    )
    seconds = load.from_s[-1] + STEP_S
    return _flow("primetest", tasks, 20.0, seconds, limit_items=BUFFER_ITEMS, lifetime_ms=math.inf)


def fixed_rate(rate_per_source: float, constraint_ms: float | None, seconds: float = 60.0) -> FlowModel:
    """One point of figure 5.7: 50 sources and sinks, 200 testers on 50 workers, a fixed rate.

    Without a constraint the sequence is measured all the same, against a bound that nobody is asked to keep.
    With one, streams begin with a lifetime of 0.4 of the bound, the mean delay that batching may cause.
    """
    load = Curve.constant(50 * rate_per_source)
    tasks = (
        TaskModel("source", "source", 50, load=load, site="worker", per_worker=1),
        _tester(replicas=200),
        TaskModel("sink", "sink", 50, service_s=0.5e-6, site="worker", per_worker=1),
    )
    bound_ms, lifetime_ms = (1_000.0, 0.0) if constraint_ms is None else (constraint_ms, 0.4 * constraint_ms)
    return _flow("primetest", tasks, bound_ms, seconds, limit_items=BUFFER_ITEMS, lifetime_ms=lifetime_ms)


def two_cores() -> FlowModel:
    """For two cores: one source, 2,000 to 20,000 items/s, testers in CPython (87 us, SCV near 9)."""
    up = [2_000 + 3_000 * k for k in range(7)]
    steps = [(30.0, up[0]), *((10.0, rate) for rate in up[1:]), (30.0, up[-1])]
    load = Curve.steps([*steps, *((10.0, rate) for rate in up[-2:0:-1]), (30.0, up[0])])
    tasks = (
        TaskModel("source", "source", 1, load=load, site="driver"),
        TaskModel(
            "tester",
            replicas=1,
            minimum=1,
            maximum=16,
            service_s=87e-6,
            service=LogNormal(3.0),
            queue_items=5_000,
            site="machine",
            per_worker=16,
        ),
        TaskModel("sink", "sink", 1, service_s=2e-6, site="driver"),
    )
    costs = Costs(30e-6, 1e-6, 30e-6, 1e-6, 0.5e-3)
    cluster = ClusterModel(cores_per_worker=2.0, replica_start_s=0.2)
    return _flow("primetest", tasks, 20.0, load.from_s[-1] + 30.0, costs=costs, cluster=cluster)


def _tester(replicas: int, minimum: int | None = None, maximum: int | None = None) -> TaskModel:
    return TaskModel(
        "tester",
        replicas=replicas,
        minimum=minimum,
        maximum=maximum,
        service_s=SERVICE_S,
        service=ShiftedExponential(0.35),
        queue_items=5_000,
        site="worker",
        per_worker=4,
    )


def _flow(
    name: str,
    tasks: tuple[TaskModel, ...],
    constraint_ms: float,
    seconds: float,
    *,
    limit_items: int | None = None,
    lifetime_ms: float = 0.0,
    costs: Costs = COSTS,
    cluster: ClusterModel = CLUSTER,
) -> FlowModel:
    streams = tuple(
        StreamModel(a, b, lifetime_ms=lifetime_ms, limit_items=limit_items, costs=costs)
        for a, b in (("source", "tester"), ("tester", "sink"))
    )
    constraint = ConstraintSpec(name="prime", sequence=SEQUENCE, latency_ms=constraint_ms, window_s=5.0)
    return FlowModel(name, tasks, streams, (constraint,), cluster, interval_s=5.0, seconds=seconds)
