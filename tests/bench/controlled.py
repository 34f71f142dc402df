"""Controlled runs made up for tests: items that arrive when they are told to, and cycles without Spark."""

from collections.abc import Callable, Sequence

from penstock.bench.control_run import NS_PER_S, ControlledRun
from penstock.bench.control_settings import INTERVAL_S, control_plan
from penstock.control.decision_log import Entry
from penstock.control.engine import Effect
from penstock.control.loop import Cycle
from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot, decode_snapshot
from tests.testing.entries import entries

BEGAN_NS = 50 * NS_PER_S
BEGAN_AT_S = 1_000.0


def snapshot(testers: int, latency_ms: float = 5.0) -> Snapshot:
    stream = {"latency_ms": latency_ms, "output_batch_ms": 1.0, "batch_lifetime_ms": 2.0}
    return decode_snapshot(
        {
            "version": 2,
            "interval_s": INTERVAL_S,
            "tasks": {
                "numbers": {"kind": "source", "parallelism": 1, "rate_total": 100.0, "emitted_total": 200},
                "tester": {
                    "kind": "task",
                    "parallelism": testers,
                    "min": 1,
                    "max": 16,
                    "elastic": True,
                    "service_ms": 4.0,
                    "service_cv": 0.1,
                    "interarrival_ms": 10.0 * testers,
                    "interarrival_cv": 0.1,
                    "queue_wait_ms": 0.5,
                    "latency_ms": 4.0,
                    "processed_total": 200,
                    "emitted_total": 200,
                },
                "results": {"kind": "sink", "parallelism": 1, "service_ms": 0.01, "queue_wait_ms": 0.1},
            },
            "streams": [
                {"from": "numbers", "to": "tester", **stream},
                {"from": "tester", "to": "results", **stream},
            ],
            "constraints": [
                {
                    "name": "c1",
                    "latency_ms": 20,
                    "sequence": ["numbers->tester", "tester", "tester->results"],
                }
            ],
        }
    )


def decision(policy: str, testers: int) -> Decision:
    return Decision(
        policy=policy,
        parallelism={"tester": testers},
        batch_lifetime_ms={},
        chains=[],
        feasible=True,
        reasons=[],
    )


def controlled(
    seconds: float,
    latency_ms: Callable[[float], float],
    replicas: Sequence[int],
    *,
    policy: str = "nephele",
    effect_ms: float | None = 40.0,
    missing: int = 0,
) -> ControlledRun:
    """100 items a second, each with the latency of its time; `replicas` are those of the tester by cycle."""
    rows = []
    for index in range(missing, round(seconds * 100)):
        due_ns = BEGAN_NS + index * NS_PER_S // 100
        rows.append((0, index, due_ns, due_ns + round(latency_ms(index / 100) * 1e6), 0))
    cycles = [
        Cycle(number, BEGAN_AT_S + (number + 1) * INTERVAL_S, snapshot(count), decision(policy, count))
        for number, count in enumerate(replicas)
    ]
    decisions = [
        Entry(
            number=cycle.number,
            at_s=cycle.at_s,
            decision=decision(policy, following),
            effect=Effect(after_ms=effect_ms),
        )
        for cycle, following in zip(cycles, [*replicas[1:], replicas[-1]], strict=True)
    ]
    return ControlledRun(
        plan=control_plan(policy),
        entries=entries(rows),
        expected=round(seconds * 100),
        cycles=cycles,
        decisions=decisions,
        began_ns=BEGAN_NS + missing * NS_PER_S // 100,
        began_at_s=BEGAN_AT_S,
        cpu_s=1.0,
        batches=0,
        restarts=0,
        problem=None,
    )
