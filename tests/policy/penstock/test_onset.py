"""What has begun to come within an interval, as a queue tells."""

import pytest
from msgspec.structs import replace

from penstock.policy.penstock.onset import onsets_per_s
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.policy import Penstock
from penstock.stats.snapshot import ChannelStats, QueueStats, Snapshot
from tests.policy.penstock.flows import INTERVAL_S, row

CALM, JUMPED = 100.0, 200.0
"""Of the second, half an interval is what it was and the other half three times as much."""


def waiting(seen: Snapshot, items: float, age_ms: float | None, **stream: object) -> Snapshot:
    """Before the first task."""
    first, *others = seen.streams
    queue = QueueStats(items=items, age_ms=age_ms)
    return replace(seen, streams=[replace(first, queue=queue, **stream), *others])


def jumped(items: float = 400.0, age_ms: float | None = 1400.0, **stream: object) -> Snapshot:
    return waiting(row(JUMPED, replicas=(4, 1), backlog=items), items, age_ms, **stream)


def test_a_queue_tells_what_comes_since_its_oldest_item() -> None:
    (rate,) = onsets_per_s(jumped(), row(CALM)).values()
    assert rate == pytest.approx((1 - 1 / 20) * 400 / 1.4)


def test_replicas_that_are_further_behind_have_more() -> None:
    def channel(sender: int, receiver: int, items: float, age_ms: float) -> ChannelStats:
        return ChannelStats(sender=sender, receiver=receiver, queue=QueueStats(items=items, age_ms=age_ms))

    channels = [
        channel(0, 0, 100, 1000),
        channel(1, 0, 200, 900),
        channel(0, 1, 100, 500),
        channel(0, 2, 3, 9),
    ]
    (rate,) = onsets_per_s(jumped(300.0, 1000.0, channels=channels), row(CALM)).values()
    assert rate == pytest.approx((1 - 1 / 20) * (300 / 1.0 + 100 / 0.5))


@pytest.mark.parametrize(
    ("seen", "before"),
    [
        (jumped(), None),
        (jumped(), row(JUMPED)),
        (jumped(age_ms=None), row(CALM)),
        (jumped(age_ms=40.0 * INTERVAL_S), row(CALM)),
        (jumped(items=100.0), row(CALM)),
        (waiting(row(CALM), 400.0, 1400.0), row(JUMPED)),
    ],
    ids=["first", "as before", "no age", "young", "less than came", "falls"],
)
def test_else_it_tells_nothing(seen: Snapshot, before: Snapshot | None) -> None:
    assert onsets_per_s(seen, before) == {}


def test_nor_does_what_a_source_catches_up_with() -> None:
    seen = jumped()
    behind = replace(seen.tasks["source"], lag_items=500.0)
    assert onsets_per_s(replace(seen, tasks={**seen.tasks, "source": behind}), row(CALM)) == {}


def test_the_first_decision_is_for_what_comes_now() -> None:
    def wanted(age_ms: float | None) -> dict[str, int]:
        policy = Penstock(PenstockParameters())
        memory, replicas = policy.initial_memory(), (4, 2)
        for luck in range(10):
            decision, memory = policy.decide(row(CALM, replicas=replicas, luck=1e-3 * luck), memory)
            replicas = (decision.parallelism["t0"], decision.parallelism["t1"])
        now = waiting(row(JUMPED, replicas=replicas, backlog=400.0), 400.0, age_ms)
        return policy.decide(now, memory)[0].parallelism

    mean, told = wanted(None), wanted(1000.0)
    assert told["t0"] > mean["t0"]
    assert told["t1"] >= mean["t1"]
