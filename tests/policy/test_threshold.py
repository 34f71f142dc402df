"""Keeping utilisation in a band."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.decision import Decision
from penstock.policy.parameters import SettingError
from penstock.policy.registry import create_from_settings
from penstock.policy.threshold import Threshold, ThresholdParameters
from penstock.stats.snapshot import Snapshot, TaskStats


def decide(task: TaskStats, **settings: Any) -> Decision:
    policy = Threshold(ThresholdParameters(**settings))
    return policy.decide(Snapshot(interval_s=5, tasks={"t": task}), None)[0]


def task(replicas: int, utilization: float | None, **fields: Any) -> TaskStats:
    return TaskStats(kind="task", parallelism=replicas, elastic=True, utilization=utilization, **fields)


@pytest.mark.parametrize(
    ("now", "utilization", "after"),
    [(10, 0.9, 15), (10, 0.5, 10), (10, 0.8, 10), (10, 0.3, 10), (10, 0.12, 2), (10, 0.0, 1)],
)
def test_goes_to_the_target_from_outside_the_band(now: int, utilization: float, after: int) -> None:
    assert decide(task(now, utilization)).parallelism == {"t": after}


def test_limits_and_reason() -> None:
    decision = decide(task(10, 0.9, max=12))
    assert decision.parallelism == {"t": 12}
    assert decision.reasons[0].why == "utilization 0.900 is above 0.8: 15 replicas would have 0.6"
    prediction = decision.reasons[0].prediction
    assert prediction is not None
    assert prediction["utilization"] == pytest.approx(0.75)


def test_cpu_instead() -> None:
    assert decide(task(10, 0.5, cpu=0.9), metric="cpu").parallelism == {"t": 15}


def test_what_was_not_measured_stops_everything() -> None:
    policy = Threshold(ThresholdParameters())
    snapshot = Snapshot(interval_s=5, tasks={"t": task(10, 0.9), "u": task(3, None)})
    decision, _ = policy.decide(snapshot, None)
    assert decision.parallelism == {"t": 10, "u": 3}
    assert [reason.why for reason in decision.reasons] == [
        "'u' lacks utilization; nothing changes until it is measured"
    ]


def test_a_band_that_would_oscillate_is_refused() -> None:
    with pytest.raises(SettingError, match=r"target: must be from twice low to high, 0\.8 to 0\.8, not 0\.6"):
        create_from_settings("threshold", ["threshold.low=0.4"])


@given(st.integers(1, 200), st.floats(0, 1))
def test_does_not_oscillate_under_a_steady_load(now: int, utilization: float) -> None:
    first = decide(task(now, utilization)).parallelism["t"]
    second = decide(task(first, min(1.0, now * utilization / first))).parallelism["t"]
    assert second == first


@given(st.integers(1, 50), st.floats(0, 1), st.integers(1, 5), st.integers(5, 60))
def test_deterministic_and_within_limits(now: int, utilization: float, least: int, most: int) -> None:
    one = task(min(max(now, least), most), utilization, min=least, max=most)
    assert decide(one) == decide(one)
    assert least <= decide(one).parallelism["t"] <= most
    assert msgspec.json.decode(msgspec.json.encode(decide(one)))
