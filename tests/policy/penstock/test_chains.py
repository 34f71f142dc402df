"""Chains: joined where a hand-over is dearer than sharing a process, taken apart where one is too few."""

from itertools import pairwise
from typing import Any

import msgspec

from penstock.policy.penstock.chains import Wish, chained
from penstock.policy.penstock.counted import Counted, counted
from penstock.stats.snapshot import ConstraintSpec, Snapshot, StreamStats, TaskStats

RATE = 100.0
TASKS = ("decode", "merge", "encode")


def flow(
    each_ms: tuple[float, ...] = (1.0, 1.0, 1.0),
    *,
    chains: tuple[tuple[str, ...], ...] = (("decode",), ("merge",), ("encode",)),
    bound_ms: float = 60.0,
    inside_ms: float = 4.0,
    **changes: Any,
) -> Snapshot:
    """A source and three tasks, joined one to one."""
    items = RATE * 5.0
    joined = {pair for chain in chains for pair in pairwise(chain)}
    tasks = {"source": TaskStats(kind="source", parallelism=1, rate_total=RATE, processed_total=items)}
    for name, service_ms in zip(TASKS, each_ms, strict=True):
        measured: dict[str, Any] = {
            "service_ms": service_ms,
            "service_cv": 0.3,
            "interarrival_ms": 10.0,
            "interarrival_cv": 1.0,
            "latency_ms": service_ms,
            "queue_wait_ms": 0.5,
            "utilization": RATE * service_ms / 1000.0,
            "processed_total": items,
            "emitted_total": items,
            **changes,
        }
        tasks[name] = TaskStats(kind="task", parallelism=1, **measured)
    tasks["sink"] = TaskStats(kind="sink", parallelism=1, processed_total=items)
    streams = [
        StreamStats(
            origin=sender,
            receiver=receiver,
            wiring="forward" if {sender, receiver} <= set(TASKS) else "round_robin",
            latency_ms=0.0 if (sender, receiver) in joined else inside_ms,
            emitted_total=items,
        )
        for sender, receiver in pairwise(tasks)
    ]
    sequence = [part for one in streams for part in (one.name, one.receiver)][:-1]
    return Snapshot(
        interval_s=5.0,
        tasks=tasks,
        streams=streams,
        constraints=[ConstraintSpec(name="live", sequence=sequence, latency_ms=bound_ms)],
        chains=[list(chain) for chain in chains],
    )


def after(
    snapshot: Snapshot, intervals: int = 2, *, grows: float = 1.0, may_join: bool = True
) -> list[list[str]]:
    """The chains after so many intervals that looked the same."""
    wish: Wish | None = None
    counts = counted(Counted(), snapshot)
    for _ in range(intervals):
        found = chained(snapshot, counts, wish, grows=grows, may_join=may_join)
        wish = found.wish
    return found.chains


APART, TOGETHER = [[name] for name in TASKS], [list(TASKS)]


def test_light_tasks_are_joined_after_two_intervals_that_agree() -> None:
    assert after(flow(), 1) == APART
    assert after(flow(), 2) == TOGETHER


def test_why_is_told() -> None:
    snapshot = flow()
    counts = counted(Counted(), snapshot)
    first = chained(snapshot, counts, None, grows=1.0, may_join=True)
    (reason,) = chained(snapshot, counts, first.wish, grows=1.0, may_join=True).reasons
    assert reason.before == ["decode", "merge", "encode"]
    assert reason.after == ["decode+merge+encode"]
    assert reason.why == "hand-overs inside cost more than sharing a process, and every bound is kept so"


def test_what_is_planned_for_counts_and_not_only_what_comes() -> None:
    assert after(flow((2.0, 2.0, 2.0)), grows=1.0) == TOGETHER
    assert after(flow((2.0, 2.0, 2.0)), grows=2.0) != TOGETHER


def test_nothing_is_joined_where_a_change_only_costs() -> None:
    assert after(flow(), may_join=False) == APART


def test_nothing_is_joined_that_would_break_a_bound() -> None:
    """One process of 8.4 ms for an item every 10 ms is slow; hand-overs that take no time save nothing."""
    assert after(flow((2.8, 2.8, 2.8), inside_ms=0.1, bound_ms=25.0)) == APART
    assert after(flow((2.8, 2.8, 2.8), inside_ms=0.1, bound_ms=250.0)) == TOGETHER


def test_work_that_joining_has_saved_counts() -> None:
    snapshot = flow((2.8, 2.8, 2.8), inside_ms=0.1, bound_ms=25.0, chains=(("decode", "merge"), ("encode",)))
    counts = counted(Counted(), snapshot)
    wish = Wish(TOGETHER, 5, {0: 0.0112})
    assert chained(snapshot, counts, wish, grows=1.0, may_join=True).chains == TOGETHER


def test_nothing_is_joined_by_guess() -> None:
    assert after(flow(service_ms=None), 3) == APART
    assert after(flow(utilization=None, interarrival_ms=None), 3) == APART


def test_a_process_that_is_full_is_taken_apart_at_once() -> None:
    found = after(flow((4.0, 4.0, 4.0), chains=(TASKS,)), 1)
    assert found != TOGETHER
    assert [name for chain in found for name in chain] == list(TASKS)


def test_between_joining_and_taking_apart_nothing_changes() -> None:
    """At 0.93 of a process it would not be joined; as long as the bound is kept it is left."""
    busy = flow((3.1, 3.1, 3.1), chains=(TASKS,))
    assert after(busy, 3) == TOGETHER
    broken = {**busy.tasks, "decode": msgspec.structs.replace(busy.tasks["decode"], latency_ms=90.0)}
    assert after(msgspec.structs.replace(busy, tasks=broken), 1) != TOGETHER
