"""The figures of a run, from points made by hand."""

from __future__ import annotations

import pytest

from penstock.sim.run import Point, Run
from penstock.sim.summary import summarise
from tests.sim.flows import pipeline


def point(number: int, mean_ms: float | None, replicas: int, busy: float) -> Point:
    return Point(
        begin_s=5.0 * number,
        end_s=5.0 * (number + 1),
        due_per_s=100.0,
        emitted_per_s=100.0,
        delivered_per_s=90.0,
        latency_ms={"c": mean_ms},
        p95_ms={"c": None},
        held={"c": mean_ms is not None and mean_ms <= 20.0},
        replicas={"work": replicas, "sink": 2},
        utilization={"work": busy / replicas, "sink": 0.1},
        cpu_share=0.5,
        workers=3.0,
        backlog=0.0,
        chains=[],
    )


def test_figures_of_a_run() -> None:
    means = [10.0, 25.0, None, 19.0, 20.0, 21.0]
    replicas = [1, 1, 6, 6, 3, 3]
    points = [point(n, mean, count, 1.8) for n, (mean, count) in enumerate(zip(means, replicas, strict=True))]
    run = Run(pipeline(), "test", 0, points, 3000, 60, 30, 60, {"c": 33.0}, 0.1, 0.5, 2)
    summary = summarise(run)
    outcome = summary.constraints["c"]
    assert outcome.share_held == pytest.approx(3 / 6)
    assert outcome.violated_s == 15.0
    assert outcome.settling_s == 7.5
    assert outcome.p95_ms == 33.0
    assert outcome.mean_ms == pytest.approx(19.0)
    assert summary.task_hours == {"work": pytest.approx(20 * 5 / 3600)}
    assert summary.processed_share == pytest.approx(0.95)
    assert summary.overshoot == pytest.approx(6 / 2 - 1)
