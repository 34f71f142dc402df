"""Decisions take effect when an engine could have carried them out."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.actuator import Actuator
from penstock.sim.cluster import Cluster
from penstock.sim.model import ClusterModel
from tests.sim.flows import pipeline


def actuator(
    *, replica_start_s: float = 0.0, worker_start_s: float = 0.0, restart_s: float | None = None
) -> Actuator:
    cluster = ClusterModel(
        replica_start_s=replica_start_s, worker_start_s=worker_start_s, restart_s=restart_s
    )
    flow = pipeline(cluster=cluster, work={"per_worker": 4})
    return Actuator(flow, Cluster(flow.cluster, flow.tasks))


def current(work: int) -> dict[str, int]:
    return {"source": 2, "work": work, "sink": 2}


def test_fewer_replicas_at_once_and_more_after_their_start() -> None:
    acts = actuator(replica_start_s=1.5, worker_start_s=10.0)
    acts.want({"work": 2}, current(3), now_s=5.0)
    assert [change.replicas for change in acts.due(5.0)] == [{"work": 2}]
    acts.want({"work": 4}, current(2), now_s=6.0)
    assert acts.due(7.0) == []
    assert acts.next_after(7.0) == 7.5
    assert [change.replicas for change in acts.due(7.5)] == [{"work": 4}]
    acts.want({"work": 5}, current(4), now_s=8.0)
    assert acts.next_after(8.0) == 19.5


def test_a_decision_repeated_does_not_start_again() -> None:
    acts = actuator(replica_start_s=4.0)
    acts.want({"work": 6}, current(3), now_s=0.0)
    acts.want({"work": 6}, current(3), now_s=3.0)
    assert acts.next_after(0.0) == 4.0
    assert acts.actions == 1


def test_a_new_decision_replaces_one_under_way() -> None:
    acts = actuator(replica_start_s=4.0)
    acts.want({"work": 6}, current(3), now_s=0.0)
    acts.want({"work": 3}, current(3), now_s=2.0)
    assert acts.next_after(0.0) == math.inf


def test_a_restart_is_one_pause_for_all_changes() -> None:
    acts = actuator(restart_s=30.0)
    acts.want({"work": 6}, current(3), now_s=1.0)
    (change,) = acts.due(1.0)
    assert (change.pause_s, change.replicas) == (30.0, {"work": 6})


@given(st.integers(-5, 500))
def test_replicas_stay_within_their_bounds(wanted: int) -> None:
    acts = actuator()
    acts.want({"work": wanted}, current(3), now_s=0.0)
    for change in acts.due(0.0):
        assert 1 <= change.replicas["work"] <= 50
