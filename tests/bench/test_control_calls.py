"""The verdicts on an async task under policies, without Spark."""

import pytest

from penstock.bench import control_calls
from penstock.bench.control_calls import BOUND_MS, CALL_S, NEEDED, QUICK
from penstock.bench.control_settings import INTERVAL_S
from tests.bench.controlled import controlled
from tests.bench.test_control import verdicts

SECONDS = QUICK.low_s + QUICK.high_s + QUICK.last_s


@pytest.fixture(autouse=True)
def _task_of_made_up_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_calls, "TASK", "tester")


def verdict(high: int, low: int, *, mean_ms: float = CALL_S * 1e3 + 5, missing: int = 0) -> dict[str, bool]:
    changes = round((QUICK.low_s + QUICK.high_s) / INTERVAL_S)
    replicas = [high] * changes + [low] * (round(SECONDS / INTERVAL_S) - changes)
    one = controlled(SECONDS, lambda _: mean_ms, replicas, missing=missing)
    return verdicts(control_calls.summarise(QUICK, {"nephele": one})[1])


def test_a_policy_takes_what_the_calls_need() -> None:
    assert NEEDED == {"low": 1, "high": 3}
    assert all(verdict(3, 1).values())
    assert all(verdict(4, 2).values())
    assert verdict(2, 1)["replicas at the high rate"] is False
    assert verdict(5, 1)["replicas at the high rate, most"] is False
    assert verdict(3, 3)["replicas at the low rate"] is False
    assert verdict(3, 1, mean_ms=BOUND_MS + 1)["mean ms at the high rate"] is False
    assert verdict(3, 1, missing=1)["items lost or duplicated"] is False
