"""TwitterSentiments: two weeks of tweets in 100 minutes, two constraints (thesis, sections 5.1.3 and 5.3.2).

The data set is not public, so the rate is a made-up curve with the published traits: 14 days of day and
night, bursts, and a peak of 6,734 tweets/s at 2,400 s that concerns few topics, so that the filter lets more
tweets pass and the sentiment task needs about 28 replicas more. Service times are chosen to give the replica
counts of figure 5.9 (single digits to about 40). Hot topics have windows of 200 ms. The merger has windows of
its own, of 5 ms: if it sent a list to all filters for each that it gets, more replicas would make more work
for the filters and ask for still more replicas.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from penstock.sim.distributions import Gamma, LogNormal
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

SECONDS = 6_000.0
DAY_S = SECONDS / 14.0
PEAK_AT_S, PEAK_PER_S, PEAK_S = 2_400.0, 6_734.0, 60.0
USUAL_HITS, PEAK_HITS = 0.30, 0.85
COSTS = Costs(24e-6, 0.5e-6, 9e-6, 0.5e-6, 0.15e-3)


def tweet_rate(seconds: float = SECONDS, seed: int = 2014) -> Curve:
    """Day and night, slow noise, a burst now and then, and the peak."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, seconds, 2.0)
    day = 2_600.0 + 1_500.0 * np.sin(2.0 * math.pi * (times / DAY_S - 0.25))
    wander = np.cumsum(rng.normal(0.0, 0.02, times.size))
    wander -= np.linspace(0.0, wander[-1], times.size)
    rate = day * (1.0 + 0.25 * np.tanh(wander))
    for begin in rng.uniform(0.0, seconds, 10):
        rate += np.where((times >= begin) & (times < begin + 20.0), rng.uniform(300.0, 1_200.0), 0.0)
    rate = np.clip(rate, 500.0, 0.9 * PEAK_PER_S)
    rate[(times >= PEAK_AT_S) & (times < PEAK_AT_S + PEAK_S)] = PEAK_PER_S
    return Curve(tuple(times.tolist()), tuple(rate.tolist()))


def hit_ratio(seconds: float = SECONDS) -> Curve:
    """Share of tweets on a popular topic; the peak is about few topics, nearly all of them popular."""
    if seconds <= PEAK_AT_S + PEAK_S:
        return Curve.constant(USUAL_HITS)
    peak_end = PEAK_AT_S + PEAK_S
    return Curve((0.0, PEAK_AT_S, peak_end), (USUAL_HITS, PEAK_HITS, USUAL_HITS))


def model() -> FlowModel:
    elastic = partial(TaskModel, replicas=4, minimum=1, maximum=100, queue_items=5_000, per_worker=4)
    tasks = (
        TaskModel("source", "source", 1, load=tweet_rate(), site="source"),
        elastic(
            "hot_topics",
            service_s=1.0e-3,
            service=Gamma(0.5),
            every_s=0.2,
            latency="read_write",
            site="hot_topics",
        ),
        TaskModel("merger", service_s=0.1e-3, every_s=5e-3, latency="read_write", site="merger"),
        elastic("filter", service_s=0.4e-3, service=Gamma(0.5), site="filter"),
        elastic("sentiment", service_s=5.0e-3, service=LogNormal(0.7), site="sentiment"),
        TaskModel("sink", "sink", 1, service_s=5e-6, site="sink"),
    )
    streams = (
        StreamModel("source", "hot_topics", costs=COSTS),
        StreamModel("hot_topics", "merger", costs=COSTS),
        StreamModel("source", "filter", costs=COSTS),
        StreamModel("merger", "filter", wiring="broadcast", costs=COSTS),
        StreamModel("filter", "sentiment", ratio=hit_ratio(), only_via="source->filter", costs=COSTS),
        StreamModel("sentiment", "sink", costs=COSTS),
    )
    topics = ["source->hot_topics", "hot_topics", "hot_topics->merger", "merger", "merger->filter", "filter"]
    sentiments = ["source->filter", "filter", "filter->sentiment", "sentiment", "sentiment->sink"]
    constraints = (
        ConstraintSpec(name="topics", sequence=topics, latency_ms=215.0, window_s=5.0),
        ConstraintSpec(name="sentiments", sequence=sentiments, latency_ms=30.0, window_s=5.0),
    )
    cluster = ClusterModel(cores_per_worker=4.0, threads_per_core=1.3, replica_start_s=1.5)
    return FlowModel("twitter", tasks, streams, constraints, cluster, interval_s=5.0, seconds=SECONDS)
