"""The adaptive-Storm classifier: four tasks in a row over tweets (sections IV-B to IV-E of that paper).

Three machines of 16 cores; pools of 50. The paper gives neither rates nor service times; 10 ms an item and a
peak of 900 items/s use most of the 48 cores. Gaussian traffic over an hour for pool against restart; ten
peaks of changing height for delta against U and Q alone; news and opinions on different ways for the larger
application (section IV-F), half of the tweets each. Storm's rebalance deactivates the spouts for 10 s,
and what arrives meanwhile is lost. An active replica that idles still costs 2 % of a core.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from penstock.sim.distributions import Gamma
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

TASKS = ("topic", "subtopic", "category", "subcategory")
BRANCHES = ("kind", "topic", "subtopic", "sentiment", "subject")
COSTS = Costs(20e-6, 2e-6, 20e-6, 2e-6, 0.5e-3)
PEAK_PER_S = 900.0
POOL = 50
SECONDS = 3_600.0


def gaussian_rate() -> Curve:
    """One bell over the hour."""
    times = np.arange(0.0, SECONDS, 5.0)
    rate = 50.0 + PEAK_PER_S * np.exp(-0.5 * ((times - SECONDS / 2.0) / 600.0) ** 2)
    return Curve(tuple(times.tolist()), tuple(rate.tolist()))


def peaks_rate() -> Curve:
    """Ten peaks, higher and higher up to the eighth."""
    times = np.arange(0.0, SECONDS, 5.0)
    rate = np.full(times.size, 80.0)
    for number in range(10):
        middle = (number + 0.5) * SECONDS / 10.0
        height = PEAK_PER_S * (0.35 + 0.65 * math.sin(math.pi * min(1.0, (number + 1) / 8.0) / 2.0))
        rate += height * np.exp(-0.5 * ((times - middle) / 80.0) ** 2)
    return Curve(tuple(times.tolist()), tuple(rate.tolist()))


def gaussian(*, restart: bool = False) -> FlowModel:
    """Pool against restart."""
    return model(gaussian_rate(), restart=restart)


def peaks() -> FlowModel:
    """Delta against U and Q alone."""
    return model(peaks_rate())


def model(rate: Curve, *, restart: bool = False) -> FlowModel:
    """`restart`: changes by Storm's rebalance instead of a pool of replicas that are ready."""
    names = ("source", *TASKS, "sink")
    streams = tuple(StreamModel(a, b, costs=COSTS) for a, b in itertools.pairwise(names))
    return _flow(rate, TASKS, streams, {"tweets": _along(*names)}, restart=restart)


def branches() -> FlowModel:
    """The larger application: kind sends news to topic -> subtopic, opinions to sentiment -> subject."""
    half = Curve.constant(0.5)
    streams = (
        StreamModel("source", "kind", costs=COSTS),
        StreamModel("kind", "topic", ratio=half, costs=COSTS),
        StreamModel("kind", "sentiment", ratio=half, costs=COSTS),
        *(
            StreamModel(a, b, costs=COSTS)
            for way in (("topic", "subtopic", "sink"), ("sentiment", "subject", "sink"))
            for a, b in itertools.pairwise(way)
        ),
    )
    sequences = {
        "news": _along("source", "kind", "topic", "subtopic", "sink"),
        "opinions": _along("kind", "sentiment", "subject", "sink"),
    }
    return _flow(gaussian_rate(), BRANCHES, streams, sequences, restart=False)


def _along(*names: str) -> list[str]:
    """The sequence from the first stream to the last."""
    return [element for a, b in itertools.pairwise(names) for element in (f"{a}->{b}", b)][:-1]


def _flow(
    rate: Curve,
    elastic: tuple[str, ...],
    streams: tuple[StreamModel, ...],
    sequences: dict[str, list[str]],
    *,
    restart: bool,
) -> FlowModel:
    tasks = (
        TaskModel("source", "source", 1, load=rate, site="source"),
        *(
            TaskModel(
                name,
                replicas=1,
                minimum=1,
                maximum=POOL,
                service_s=10e-3,
                service=Gamma(0.5),
                site="supervisors",
                per_worker=POOL,
            )
            for name in elastic
        ),
        TaskModel("sink", "sink", 1, service_s=20e-6, site="source"),
    )
    constraints = tuple(
        ConstraintSpec(name=name, sequence=sequence, latency_ms=500.0, window_s=25.0)
        for name, sequence in sequences.items()
    )
    cluster = ClusterModel(
        cores_per_worker=48.0,
        idle_cores=0.02,
        restart_s=10.0 if restart else None,
        restart_loses=restart,
    )
    return FlowModel(
        "classifier", tasks, streams, constraints, cluster, interval_s=25.0, step_s=2.5, seconds=SECONDS
    )
