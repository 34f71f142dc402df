"""What a controlled flow looks like on the screen."""

import io

from rich.console import Console

from penstock.cli.control_view import control_view
from penstock.control.loop import Cycle
from penstock.policy.decision import Decision, Reason, Refusal
from penstock.stats.snapshot import decode_snapshot

SNAPSHOT = {
    "version": 1,
    "interval_s": 5,
    "tasks": {
        "numbers": {"kind": "source", "parallelism": 1, "rate_total": 400, "processed_total": 2000},
        "work": {
            "kind": "task",
            "parallelism": 2,
            "min": 1,
            "max": 8,
            "elastic": True,
            "service_ms": 4.0,
            "latency_ms": 4.0,
            "queue_wait_ms": 1.5,
            "utilization": 0.8,
            "processed_total": 2000,
            "backlog_total": 12,
        },
        "out": {"kind": "sink", "parallelism": 1},
    },
    "streams": [
        {
            "from": "numbers",
            "to": "work",
            "latency_ms": 20.0,
            "output_batch_ms": 3.0,
            "batch_lifetime_ms": 6.0,
        },
        {"from": "work", "to": "out"},
    ],
    "constraints": [
        {
            "name": "quick",
            "sequence": ["numbers->work", "work"],
            "latency_ms": 20,
            "statistic": "mean",
            "window_s": 5,
        }
    ],
    "chains": [["work"]],
}


def test_view_shows_bounds_targets_lifetimes_and_reasons() -> None:
    decision = Decision(
        policy="nephele",
        parallelism={"work": 5},
        batch_lifetime_ms={"numbers->work": 2.5},
        chains=[["work"]],
        feasible=False,
        reasons=[Reason(rule="rebalance", why="queues are too long", task="work")],
        refused=[Refusal(guard="cool_down", why="changed a moment ago", task="work")],
    )
    console = Console(file=io.StringIO(), width=140)
    console.print(control_view(Cycle(7, 0.0, decode_snapshot(SNAPSHOT), decision)))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for text in (
        "quick",
        "24.00",
        "120%",
        "400",
        "80%",
        "2.50",
        "decision 7 of nephele, infeasible",
        "rebalance: queues are too long",
        "held back by cool_down: changed a moment ago",
    ):
        assert text in shown, text
