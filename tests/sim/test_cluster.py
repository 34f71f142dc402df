"""Cores are shared, used and leased."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.cluster import Cluster
from penstock.sim.model import ClusterModel, TaskModel

TASKS = (TaskModel("a", replicas=4, per_worker=2), TaskModel("b", replicas=2, per_worker=1))


def settled(cluster: Cluster, busy: dict[str, list[float]]) -> dict[str, np.ndarray]:
    replicas = {name: len(values) for name, values in busy.items()}
    times = {name: np.array(values) for name, values in busy.items()}
    for _ in range(30):
        slow = cluster.share_cores(replicas, times, duration_s=1.0)
    return slow


def test_only_the_full_worker_is_slower() -> None:
    slow = settled(
        Cluster(ClusterModel(cores_per_worker=2.0), TASKS), {"a": [1.0, 1.0, 0.1, 0.1], "b": [1.0, 0.1]}
    )
    assert slow["a"] == pytest.approx([1.5, 1.5, 1.0, 1.0], rel=1e-6)
    assert slow["b"] == pytest.approx([1.5, 1.0], rel=1e-6)


def test_idle_replicas_and_hyper_threading_count() -> None:
    busy = {"a": [1.0, 1.0, 1.0, 1.0], "b": [0.0, 0.0]}
    idle = settled(Cluster(ClusterModel(cores_per_worker=2.0, idle_cores=0.5), TASKS), busy)
    assert idle["a"] == pytest.approx([1.75] * 4, rel=1e-6)
    threads = settled(
        Cluster(ClusterModel(cores_per_worker=2.0, idle_cores=0.5, threads_per_core=2.0), TASKS), busy
    )
    assert threads["a"] == pytest.approx([1.0] * 4)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.floats(0.5, 4))
def test_no_more_cores_are_used_than_there_are(busy: list[float], cores: float) -> None:
    cluster = Cluster(ClusterModel(cores_per_worker=cores), TASKS)
    settled(cluster, {"a": busy, "b": busy[:2]})
    assert cluster.busy_core_seconds <= cluster.core_seconds + 1e-9
    assert cluster.worker_seconds == pytest.approx(60.0)


def test_workers_are_leased_for_the_task_that_needs_most() -> None:
    cluster = Cluster(ClusterModel(), TASKS)
    assert cluster.workers("cluster", {"a": 4, "b": 2}) == 2
    assert cluster.workers("cluster", {"a": 5, "b": 2}) == 3
    assert cluster.workers("cluster", {"a": 1, "b": 7}) == 7
