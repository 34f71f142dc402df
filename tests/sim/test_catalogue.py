"""Every application and profile runs, and keeps the shape of the papers."""

from __future__ import annotations

import pytest

from penstock.policy.registry import create_policy
from penstock.sim.catalogue import APPLICATIONS, find_workload
from penstock.sim.engine import SimulatedEngine
from penstock.sim.run import simulate
from penstock.sim.workloads import classifier, livestream, primetest, twitter
from penstock.stats.snapshot import check_snapshot

PROFILES = [(name, profile) for name, app in APPLICATIONS.items() for profile in app.profiles]


@pytest.mark.parametrize(("application", "profile"), PROFILES)
def test_a_profile_can_be_observed(application: str, profile: str) -> None:
    flow = find_workload(application, profile)
    snapshot = SimulatedEngine(flow, seconds=0.5).observe()
    assert snapshot is not None
    check_snapshot(snapshot)


def test_primetest_has_the_rates_and_the_length_of_the_paper() -> None:
    flow = primetest.elastic()
    load = flow.task("source").load
    assert load is not None
    assert load.area_until(flow.seconds) == pytest.approx(32 * 60.0 * 720_000)
    assert [load.at(60.0 * step + 1.0) / 32 for step in range(16)] == [
        10_000.0 * k for k in (1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1)
    ]
    tester, source = flow.task("tester"), flow.task("source")
    assert tester.bounds == (1, 392)
    assert tester.bounds[1] // tester.per_worker + source.replicas // source.per_worker == 130


def test_twitter_peaks_where_the_paper_does() -> None:
    rate = twitter.tweet_rate()
    assert max(rate.values) == rate.at(2_410.0) == 6_734.0
    assert twitter.hit_ratio().at(2_410.0) > 2 * twitter.hit_ratio().at(0.0)


def test_fewer_pipelines_are_the_same_livestream() -> None:
    means = []
    for pipelines in (10, 40):
        flow = livestream.model(pipelines=pipelines, seconds=30.0)
        means.append(simulate(flow, create_policy("nephele"), seed=1).points[-1].latency_ms["live"])
    assert means[0] == pytest.approx(means[1], rel=0.05)


def test_the_classifier_loses_input_only_when_it_restarts() -> None:
    lost = {}
    for restart in (False, True):
        flow = classifier.gaussian(restart=restart)
        lost[restart] = simulate(flow, create_policy("mape"), seed=1, seconds=800.0).lost
    assert lost[False] == 0
    assert lost[True] > 0
