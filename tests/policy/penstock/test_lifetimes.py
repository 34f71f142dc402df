"""Lifetimes: longer where shipping is much of the work, shorter where nothing else helps."""

import msgspec
import pytest

from penstock.policy.penstock.counted import Counted, counted
from penstock.policy.penstock.lifetimes import lifetimes
from penstock.stats.snapshot import Snapshot
from tests.policy.penstock.flows import row


def with_lifetimes(seen: Snapshot, lifetime_ms: float) -> Snapshot:
    streams = [msgspec.structs.replace(one, batch_lifetime_ms=lifetime_ms) for one in seen.streams]
    return msgspec.structs.replace(seen, streams=streams)


def changed(seen: Snapshot, *infeasible: str) -> dict[str, float]:
    return lifetimes(seen, counted(Counted(), seen), 0.05, infeasible)[0]


def test_long_work_needs_no_envelopes_that_are_shared() -> None:
    assert changed(row(150, (20.0, 5.0))) == {}


def test_items_that_take_as_long_as_an_envelope_share_them() -> None:
    seen = row(20_000, (0.05, 0.05), (2, 2), bound_ms=20.0)
    # Ten items for each envelope, with 10,000 items/s in a channel of the source: 1 ms, below a tenth of 20.
    assert changed(seen)["source->t0"] == 1.0
    assert changed(seen)["t0->t1"] == pytest.approx(2.0)
    assert changed(with_lifetimes(seen, 2.0)) == {}


def test_an_idle_task_is_left_alone() -> None:
    assert changed(row(200, (0.05, 0.05), (2, 2), bound_ms=20.0)) == {}


def test_never_more_than_the_bound_can_bear() -> None:
    seen = row(2_000, (0.5, 0.001), (2, 2), bound_ms=5.0, utilization=0.9)
    assert all(after_ms <= 0.5 for after_ms in changed(seen).values())


def test_a_bound_that_cannot_be_kept_gets_half_of_them() -> None:
    seen = with_lifetimes(row(150), 4.0)
    assert set(changed(seen, "c1").values()) == {2.0}
    assert set(changed(with_lifetimes(seen, 0.6), "c1").values()) == {0.0}
    _, reasons = lifetimes(seen, counted(Counted(), seen), 0.05, ["c1"])
    assert reasons[0].why == "c1 cannot be kept by replicas: items of source->t0 wait less for others"
