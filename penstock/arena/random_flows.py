"""Flows drawn at random: the same seed gives the same flow.

Drawn are the shape of the graph, wirings, selectivities, service times and how much they vary, lifetimes, how
tight the bound is, and how long a change takes: 0.1 to 30 s, or a restart of the whole flow. A task needs
up to eight replicas at the peak and may have about three times as many.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.distributions import (
    Deterministic,
    Distribution,
    Exponential,
    Gamma,
    LogNormal,
    ShiftedExponential,
)
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, Keys, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

if TYPE_CHECKING:
    from numpy.random import Generator

INTERVAL_S = 5.0
SHAPES = ("row", "fan-out", "branches", "join", "updates")
RESTARTS = 0.15
UPDATES = 0.02
"""Of the items of a source that broadcasts to all replicas of a task, so many are sent."""
COSTS = Costs(20e-6, 2e-6, 20e-6, 2e-6, 0.5e-3)
_CORES = 4


def random_flow(seed: int, load: Curve, seconds: float) -> FlowModel:
    """The flow of this seed under a load that is given as shares of its peak."""
    rng = np.random.default_rng([seed, 2014])
    shape = str(rng.choice(SHAPES))
    ways = _ways(shape, rng)
    peak_per_s = float(np.exp(rng.uniform(math.log(40.0), math.log(250.0))))
    streams = _streams(shape, ways, rng)
    rates = _peak_rates(ways, streams, peak_per_s)
    tasks = tuple(_task(name, ways, rates[name], load, peak_per_s, rng) for name in _in_order(ways))
    constraints = tuple(
        _constraint(f"way{number}", way, tasks, streams, rng) for number, way in enumerate(ways, start=1)
    )
    delay_s = float(np.exp(rng.uniform(math.log(0.1), math.log(30.0))))
    restarts = rng.random() < RESTARTS
    cluster = ClusterModel(
        cores_per_worker=float(_CORES),
        replica_start_s=0.0 if restarts else delay_s,
        restart_s=delay_s if restarts else None,
    )
    return FlowModel(
        f"random{seed}",
        tasks,
        streams,
        constraints,
        cluster,
        interval_s=INTERVAL_S,
        step_s=INTERVAL_S / 2.0,
        seconds=seconds,
    )


def _ways(shape: str, rng: Generator) -> list[list[str]]:
    """The ways from a source to a sink; those of a flow share tasks."""
    row = [f"task{number}" for number in range(1, int(rng.integers(2, 5)))]
    if shape == "branches":
        return [["source", "task1", "left", "sink"], ["source", "task1", "right", "sink"]]
    if shape in ("join", "updates"):
        return [["source", *row, "sink"], ["second", row[-1], "sink"]]
    return [["source", *row, "sink"]]


def _in_order(ways: list[list[str]]) -> list[str]:
    """Sources, then tasks as the ways have them, then the sink."""
    names = list(dict.fromkeys(name for way in ways for name in way[:-1]))
    sources = [way[0] for way in ways]
    first = list(dict.fromkeys(sources))
    return [*first, *(name for name in names if name not in first), "sink"]


def _streams(shape: str, ways: list[list[str]], rng: Generator) -> tuple[StreamModel, ...]:
    pairs = list(dict.fromkeys(pair for way in ways for pair in itertools.pairwise(way)))
    lifetime_ms = float(rng.choice([0.0, 0.0, 2.0, 5.0]))
    streams = []
    for sender, receiver in pairs:
        forks = sum(pair[0] == sender for pair in pairs) > 1
        multiplies = shape == "fan-out" and sender == "task1"
        outside = sender in ("source", "second") or receiver == "sink"
        updates = shape == "updates" and sender == "second"
        ratio = float(rng.choice([0.5, 1.0, 1.0, 1.0, 2.0]))
        if forks:
            ratio = float(rng.uniform(0.3, 0.7))
        elif multiplies:
            ratio = float(rng.integers(2, 6))
        elif outside:
            ratio = UPDATES if updates else 1.0
        keyed = not outside and rng.random() < 0.3
        streams.append(
            StreamModel(
                sender,
                receiver,
                wiring="broadcast" if updates else "key" if keyed else "round_robin",
                keys=Keys(2_000, float(rng.uniform(0.0, 0.4))) if keyed else None,
                lifetime_ms=lifetime_ms,
                ratio=Curve.constant(ratio),
                costs=COSTS,
            )
        )
    return tuple(streams)


def _peak_rates(
    ways: list[list[str]], streams: tuple[StreamModel, ...], peak_per_s: float
) -> dict[str, float]:
    rates = dict.fromkeys(_in_order(ways), 0.0) | {way[0]: peak_per_s for way in ways}
    for name in rates:
        for stream in streams:
            if stream.sender == name:
                rates[stream.receiver] += rates[name] * stream.ratio.at(0.0)
    return rates


def _task(
    name: str, ways: list[list[str]], rate: float, load: Curve, peak_per_s: float, rng: Generator
) -> TaskModel:
    if name in {way[0] for way in ways}:
        scaled = Curve(load.from_s, tuple(peak_per_s * share for share in load.values))
        return TaskModel(name, "source", load=scaled, site=name)
    if name == "sink":
        return TaskModel(name, "sink", service_s=20e-6, site=name)
    needed = float(rng.uniform(0.7, 8.0))
    most = 2 + math.ceil(3.0 * needed)
    start = math.ceil(load.at(0.0) * needed / 0.65)
    return TaskModel(
        name,
        replicas=min(most, max(1, start)),
        minimum=1,
        maximum=most,
        service_s=needed / rate,
        service=_service(rng),
        queue_items=5_000,
        site=name,
        per_worker=_CORES,
    )


def _service(rng: Generator) -> Distribution:
    cv = float(rng.uniform(0.3, 1.0))
    drawn = int(rng.integers(5))
    choices: tuple[Distribution, ...] = (
        Deterministic(),
        Exponential(),
        Gamma(cv),
        LogNormal(1.5 * cv),
        ShiftedExponential(cv),
    )
    return choices[drawn]


def _constraint(
    name: str,
    way: list[str],
    tasks: tuple[TaskModel, ...],
    streams: tuple[StreamModel, ...],
    rng: Generator,
) -> ConstraintSpec:
    """From the first stream to the last; the bound is some times what an item takes if it never waits."""
    inside = way[1:-1]
    hops = list(itertools.pairwise(way))
    services_ms = sum(1000.0 * task.service_s for task in tasks if task.name in inside)
    hops_ms = sum(
        1000.0 * stream.costs.transport_s + stream.lifetime_ms
        for stream in streams
        if (stream.sender, stream.receiver) in hops
    )
    sequence = [element for a, b in hops for element in (f"{a}->{b}", b)][:-1]
    bound_ms = float(rng.uniform(1.8, 4.0)) * services_ms + 1.5 * hops_ms
    return ConstraintSpec(name=name, sequence=sequence, latency_ms=round(bound_ms, 3), window_s=INTERVAL_S)


def set_aside(seed: int) -> bool:
    """Every fifth random flow is kept for the end, so that nothing can be tuned to it."""
    return seed % 5 == 0
