"""Keys are divided anew where one replica is the bottleneck; what cannot be divided, and prices, are told."""

from typing import Any

import msgspec
import pytest

from penstock.policy.decision import Decision, Reason
from penstock.policy.group_loads import even_owners, key_spans
from penstock.policy.guards.divide_keys import PRICE, RULE, DivideKeys
from penstock.stats.snapshot import CommitStats, KeyGroupStats, KeySpanStats, Snapshot
from tests.policy.guards.scripted import snapshot, steps, task

GROUPS = 64
GUARD = DivideKeys(above=0.6, gain=0.05, intervals=2, warm_up_s=0)


def skewed(share: float, replicas: int, owners: list[int] | None = None, **fields: Any) -> Snapshot:
    """1,000 items, of which this share is of group 0, and the others are of all other groups."""
    owned = owners or even_owners(GROUPS, replicas)
    loads = [1000 * share] + [1000 * (1 - share) / (GROUPS - 1)] * (GROUPS - 1)
    table = [
        KeySpanStats(first=first, last=last, replica=replica, processed=sum(loads[first : last + 1]))
        for first, last, replica in key_spans(owned)
    ]
    known = {
        "key_groups": [KeyGroupStats(group=0, processed=1000 * share)],
        "key_table": table,
        "utilization_max": 0.9,
        "state_bytes": 64_000.0,
    }
    return msgspec.structs.replace(
        snapshot({"counts": task(replicas, **{**known, **fields})}), commits=CommitStats(took_ms=80)
    )


def said(decision: Decision, rule: str = RULE) -> list[Reason]:
    return [reason for reason in decision.reasons if reason.rule == rule]


def owners_in(decision: Decision) -> list[int]:
    return [replica for first, last, replica in decision.key_tables["counts"] for _ in range(first, last + 1)]


def busiest(share: float, owners: list[int], replicas: int) -> float:
    loads = [share] + [(1 - share) / (GROUPS - 1)] * (GROUPS - 1)
    return max(
        sum(load for load, owner in zip(loads, owners, strict=True) if owner == replica)
        for replica in range(replicas)
    )


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_the_busiest_replica_keeps_little_but_the_heaviest_group(share: float) -> None:
    first, second = steps(GUARD, [(skewed(share, 4), {})] * 2)
    assert first.key_tables == {}
    assert said(first)[0].why.startswith("not yet, seen for 1 of 2 intervals: one of 4 replicas has ")
    least = max(0.25, share)
    assert busiest(share, even_owners(GROUPS, 4), 4) > least + 0.05
    assert least <= busiest(share, owners_in(second), 4) <= 1.06 * least
    (reason,) = said(second)
    assert reason.inputs is not None
    assert reason.prediction is not None
    assert reason.inputs["busiest_share"] == pytest.approx(busiest(share, even_owners(GROUPS, 4), 4))
    assert reason.prediction["busiest_share"] == pytest.approx(busiest(share, owners_in(second), 4))
    assert reason.prediction["least_possible_share"] == pytest.approx(least)
    assert reason.prediction["wait_ms"] == 80
    moved = reason.prediction["moved_state_bytes"]
    assert isinstance(moved, int)
    assert 0 < moved <= 15_000, "at most those that it had beside the heavy one"


def test_what_cannot_be_divided_is_told() -> None:
    owners = [0] + [1 + number % 3 for number in range(GROUPS - 1)]
    decision = steps(GUARD, [(skewed(0.7, 4, owners), {})] * 3)[-1]
    assert decision.key_tables == {}
    assert said(decision)[0].why == (
        "key group 0 has 70% of the load, and keys of one group stay together: with any division the busiest"
        " replica has as much (now 70%), and more than 2 replicas do not help; its keys:"
        " penstock state CHECKPOINT counts --group 0"
    )
    without = steps(GUARD, [(skewed(0.7, 4, owners, state_bytes=None), {})] * 3)[-1]
    assert said(without)[0].why.endswith("do not help"), "nothing is kept of its keys"


def test_nothing_is_divided_without_a_bottleneck_or_a_table_or_after_a_while() -> None:
    calm = skewed(0.5, 4, utilization_max=0.5)
    assert all(not said(decision) for decision in steps(GUARD, [(calm, {})] * 3))
    even = skewed(1 / GROUPS, 4)
    assert all(not said(decision) for decision in steps(GUARD, [(even, {})] * 3))
    fixed = skewed(0.5, 4, key_table=None)
    assert all(not said(decision) for decision in steps(GUARD, [(fixed, {})] * 3))
    warming = DivideKeys(above=0.6, gain=0.05, intervals=2, warm_up_s=15)
    tables = [decision.key_tables for decision in steps(warming, [(skewed(0.5, 4), {})] * 5)]
    assert [bool(table) for table in tables] == [False, False, False, False, True]
    again = [bool(one.key_tables) for one in steps(GUARD, [(skewed(0.5, 4), {})] * 4)]
    assert again == [False, True, False, True], "it rests after a division"


def test_other_replicas_get_a_table_that_fits_and_the_price_is_told() -> None:
    (decision,) = steps(GUARD, [(skewed(0.5, 2), {"counts": 4})])
    assert busiest(0.5, owners_in(decision), 4) <= 0.53
    (price,) = said(decision, PRICE)
    assert (price.before, price.after) == (2, 4)
    assert price.prediction is not None
    assert price.prediction["moved_share"] == pytest.approx(0.25, abs=0.05)
    assert "bytes of state change hands; their items wait for a commit, about 80 ms, all others" in price.why
    assert said(decision)[0].why.startswith("evenly divided, the busiest of 4 replicas would have 62% of the")


def test_other_replicas_are_even_where_that_does() -> None:
    (decision,) = steps(GUARD, [(skewed(1 / GROUPS, 2), {"counts": 4})])
    assert decision.key_tables == {}
    (price,) = said(decision, PRICE)
    assert price.prediction == {
        "moved_share": pytest.approx(0.5 + 0.25),
        "moved_state_bytes": 48_000,
        "wait_ms": 80,
    }


def test_a_price_is_told_where_no_table_can_be_given() -> None:
    shown = skewed(0.5, 2, key_table=None, key_groups=None, state_bytes=None)
    assert not said(steps(GUARD, [(shown, {"counts": 4})])[0], PRICE), "it does not receive by key"
    streams = [msgspec.structs.replace(stream, wiring="key") for stream in shown.streams]
    keyed = msgspec.structs.replace(shown, streams=streams)
    (price,) = said(steps(GUARD, [(keyed, {"counts": 4})])[0], PRICE)
    assert price.why.startswith("keys with 75% of the items change hands; their items wait for a commit")
    stopping = msgspec.structs.replace(keyed, commits=None)
    (price,) = said(steps(GUARD, [(stopping, {"counts": 4})])[0], PRICE)
    assert price.why.endswith("that takes a boundary, for which sources stop for some tenths of a second")
