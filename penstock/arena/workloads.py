"""What is fought over: the papers' applications with their loads, and random flows under loads of every kind.

Applications are those of `penstock.sim.workloads`, smaller or shorter, so that each can be run many times.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.arena.loads import KINDS, load_of_kind, load_of_trace
from penstock.arena.random_flows import random_flow, set_aside
from penstock.sim.distributions import Gamma
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.sim.workloads import classifier, livestream, primetest, twitter, wordcount
from penstock.stats.snapshot import ConstraintSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

QUICK_S = 150.0
FULL_S = 600.0


@dataclass(frozen=True, slots=True)
class Workload:
    """A name, and the flow of each seed; `seeds` are those that it is run with."""

    name: str
    flow: Callable[[int], FlowModel]
    seeds: tuple[int, ...]


def workloads(
    *, quick: bool, seeds: int, traces: Mapping[str, Sequence[float]], aside: bool = False
) -> list[Workload]:
    """All of them. `aside`: only the random flows that are set aside otherwise."""
    length_s = QUICK_S if quick else FULL_S
    numbers = tuple(_random_seeds(seeds, aside=aside))
    found = [] if aside else _papers(quick=quick, seeds=tuple(range(1, seeds + 1)))
    for kind in KINDS:
        found.append(Workload(f"random, {kind}", _under_kind(kind, length_s), numbers))
    for name, rates in traces.items():
        found.append(Workload(f"random, {name}", _under_trace(rates, length_s), numbers))
    return found


def gentle(flow: FlowModel) -> bool:
    """Whether the load changes by less than a fifth within the time that any policy takes to react.

    That is an interval to see it and what a change takes. What a task lets through may change, too.
    """
    cluster = flow.cluster
    delay_s = cluster.replica_start_s + cluster.worker_start_s
    react_s = flow.interval_s + (delay_s if cluster.restart_s is None else cluster.restart_s)
    curves = [*(task.load for task in flow.tasks), *(stream.ratio for stream in flow.streams)]
    return all(_changes_little(curve, react_s, flow.seconds) for curve in curves if curve is not None)


def _changes_little(curve: Curve, within_s: float, until_s: float) -> bool:
    pieces = [piece for piece in zip(curve.from_s, curve.values, strict=True) if piece[0] < until_s]
    for number, (_, before) in enumerate(pieces):
        for begins_s, after in pieces[number + 1 :]:
            if begins_s > pieces[number + 1][0] + within_s:
                break
            if not 0.8 * before < after < 1.2 * before:
                return False
    return True


def _random_seeds(count: int, *, aside: bool) -> list[int]:
    """So many in all; of every five one is set aside."""
    return [seed for seed in range(1, count + count // 4 + 1) if set_aside(seed) == aside]


def _under_kind(kind: str, length_s: float) -> Callable[[int], FlowModel]:
    return lambda seed: random_flow(seed, load_of_kind(kind, length_s, seed), length_s)


def _under_trace(rates: Sequence[float], length_s: float) -> Callable[[int], FlowModel]:
    return lambda seed: random_flow(seed, load_of_trace(rates, length_s, seed), length_s)


def _papers(*, quick: bool, seeds: tuple[int, ...]) -> list[Workload]:
    models: dict[str, Callable[[], FlowModel]] = {
        "primetest, long": lambda: primetest.elastic(share=1 / 32, step_s=5.0 if quick else 10.0),
        "primetest, short": short_climb,
        "twitter": lambda: tweets(150.0 if quick else 600.0),
        "livestream": lambda: livestream.model(pipelines=4, seconds=60.0 if quick else 180.0),
        "wordcount, heron": lambda: _slower_steps(wordcount.heron(seconds=120.0 if quick else 400.0)),
        "wordcount, flink": lambda: _slower_steps(_two_phases()),
        "classifier, row": lambda: _bell(classifier.gaussian(), quick=quick),
        "classifier, restarts": lambda: _bell(classifier.gaussian(restart=True), quick=quick),
        "classifier, branches": lambda: _bell(classifier.branches(), quick=quick),
    }
    if quick:
        # Their oracles take longer than all others together.
        models = {name: m for name, m in models.items() if name.split(",")[0] != "classifier"}
        del models["wordcount, flink"]
    return [Workload(name, _always(make), seeds) for name, make in models.items()]


def _always(make: Callable[[], FlowModel]) -> Callable[[int], FlowModel]:
    """The application is the same for every seed; the luck is not."""
    return lambda seed: make()  # noqa: ARG005


def short_climb() -> FlowModel:
    """PrimeTest's short profile on Spark: tenfold within 28 s, 4 ms an item, 1 to 16 testers, every 2 s."""
    profile = ((10, 0.1), (8, 0.4), (8, 0.7), (14, 1.0), (8, 0.5), (12, 0.1))
    costs = Costs(50e-6, 5e-6, 50e-6, 5e-6, 1e-3)
    tasks = (
        TaskModel("source", "source", load=Curve.steps([(s, 3_000.0 * share) for s, share in profile])),
        TaskModel(
            "tester",
            replicas=1,
            minimum=1,
            maximum=16,
            service_s=4e-3,
            service=Gamma(0.1),
            queue_items=5_000,
            site="testers",
            per_worker=16,
        ),
        TaskModel("sink", "sink", service_s=5e-6, site="sink"),
    )
    streams = (
        StreamModel("source", "tester", lifetime_ms=2.0, costs=costs),
        StreamModel("tester", "sink", lifetime_ms=2.0, costs=costs),
    )
    constraint = ConstraintSpec(name="prime", sequence=primetest.SEQUENCE, latency_ms=20.0, window_s=2.0)
    cluster = ClusterModel(cores_per_worker=16.0, replica_start_s=0.2)
    return FlowModel(
        "primetest",
        tasks,
        streams,
        (constraint,),
        cluster,
        interval_s=2.0,
        seconds=sum(s for s, _ in profile),
    )


def tweets(seconds: float) -> FlowModel:
    """TwitterSentiments around its peak, which begins after two fifths of the time; every seed the same."""
    flow = twitter.model()
    skipped = twitter.PEAK_AT_S - 0.4 * seconds
    tasks = tuple(
        task if task.load is None else dataclasses.replace(task, load=_from(task.load, skipped, seconds))
        for task in flow.tasks
    )
    streams = tuple(
        dataclasses.replace(stream, ratio=_from(stream.ratio, skipped, seconds)) for stream in flow.streams
    )
    return dataclasses.replace(flow, tasks=tasks, streams=streams, seconds=seconds, step_s=2.5)


def _from(curve: Curve, begin_s: float, seconds: float) -> Curve:
    """The curve from `begin_s` on."""
    later = [time_s for time_s in curve.from_s if begin_s < time_s < begin_s + seconds]
    return Curve(
        (0.0, *(time_s - begin_s for time_s in later)),
        tuple(curve.at(time_s) for time_s in (begin_s, *later)),
    )


def _bell(flow: FlowModel, *, quick: bool) -> FlowModel:
    """The hour in ten minutes (five if quick), decided every 10 s, at a third of the rate."""
    share, seconds = 1.0 / 3.0, 300.0 if quick else 600.0
    faster = seconds / flow.seconds
    tasks = tuple(
        task
        if task.load is None
        else dataclasses.replace(
            task,
            load=Curve(
                tuple(time_s * faster for time_s in task.load.from_s),
                tuple(rate * share for rate in task.load.values),
            ),
        )
        for task in flow.tasks
    )
    return dataclasses.replace(flow, tasks=tasks, interval_s=10.0, step_s=5.0, seconds=seconds)


def _two_phases() -> FlowModel:
    """DS2's two phases on Flink, shorter."""
    phases = Curve.steps([(300.0, 2_000.0), (200.0, 1_000.0)])
    flow = wordcount.flink()
    tasks = tuple(
        task if task.load is None else dataclasses.replace(task, load=phases) for task in flow.tasks
    )
    return dataclasses.replace(flow, tasks=tasks, seconds=500.0)


def _slower_steps(flow: FlowModel) -> FlowModel:
    return dataclasses.replace(flow, step_s=1.0)
