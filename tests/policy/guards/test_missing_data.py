"""Missing, partial and impossible data."""

import math
from typing import Any

import msgspec
import pytest

from penstock.policy.guards.missing_data import MissingData
from penstock.policy.guards.port import Seen
from penstock.stats.snapshot import InstanceStats, Snapshot, TaskStats
from tests.policy.guards.scripted import snapshot, task


def faults(one: Snapshot) -> list[str]:
    return [refusal.why for refusal in MissingData().inspect(Seen(one, 5.0), None)]


def test_measured_data_passes() -> None:
    assert faults(snapshot(a=2)) == []


def test_a_task_that_did_nothing_passes() -> None:
    assert faults(snapshot({"a": task(2, processed_total=0.0)})) == []


def test_a_fixed_task_need_not_be_measured() -> None:
    assert faults(snapshot({"a": TaskStats(kind="task", parallelism=1)})) == []


def test_an_elastic_task_must_be_measured() -> None:
    assert faults(snapshot({"a": task(2, processed_total=None)})) == ["'a' was not measured in this interval"]


@pytest.mark.parametrize(
    "instances", [[InstanceStats(processed=1.0)], [InstanceStats(processed=1.0), InstanceStats()]]
)
def test_every_replica_must_have_reported(instances: list[InstanceStats]) -> None:
    assert faults(snapshot({"a": task(2, instances=instances)})) == ["only 1 of 2 replicas of 'a' reported"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("field", ["service_ms", "utilization", "processed_total", "backlog_total"])
def test_impossible_numbers(field: str, value: float) -> None:
    changes: dict[str, Any] = {field: value}
    assert faults(snapshot({"a": task(1, **changes)})) == [
        f"tasks.a.{field} is not a finite number of 0 or more"
    ]


def test_impossible_numbers_of_replicas_streams_and_intervals() -> None:
    one = snapshot({"a": task(1, instances=[InstanceStats(useful_s=math.nan, processed=1.0)])})
    assert faults(one) == ["tasks.a.instances[0].useful_s is not a finite number of 0 or more"]
    stream = msgspec.structs.replace(one.streams[0], latency_ms=math.nan)
    bad = msgspec.structs.replace(snapshot(a=1), streams=[stream], interval_s=math.nan)
    assert faults(bad) == [
        "interval_s is nan",
        "latency_ms of stream 'source->a' is not a finite number of 0 or more",
    ]
