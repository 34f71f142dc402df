"""What a controlled flow looks like on the screen."""

import io

from msgspec.structs import replace
from rich.console import Console

from penstock.cli.changes import changed_settings, decision_line
from penstock.cli.control_view import control_view
from penstock.cli.decide_explain import explain_decision
from penstock.control.decision_log import Entry
from penstock.control.engine import Effect
from penstock.control.loop import Cycle
from penstock.policy.decision import Decision, Reason, Refusal
from penstock.policy.keep import keep
from penstock.stats.snapshot import decode_snapshot

SNAPSHOT = {
    "version": 2,
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


DECISION = Decision(
    policy="nephele",
    parallelism={"work": 5},
    batch_lifetime_ms={"numbers->work": 2.5},
    chains=[["work"]],
    feasible=False,
    reasons=[Reason(rule="rebalance", why="queues are too long", task="work")],
    refused=[Refusal(guard="cool_down", why="changed a moment ago", task="work")],
)
EARLIER = Entry(number=5, at_s=90.0, decision=DECISION, effect=Effect(after_ms=45.0, gap_ms=300.0))
LAST = Entry(number=7, at_s=100.0, decision=DECISION)


def shown(width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(control_view(decode_snapshot(SNAPSHOT), [EARLIER, LAST]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_view_shows_bounds_targets_lifetimes_and_reasons() -> None:
    for text in (
        "quick",
        "24.00",
        "120%",
        "400",
        "80%",
        "2 → 5",
        "6.00 → 2.50",
        "last change 10 s ago, in effect after 45 ms, with a gap of 300 ms",
        "decision 7 of nephele: work 2 -> 5 replicas, numbers->work 6.0 -> 2.5 ms (infeasible)",
        "rebalance: queues are too long",
        "held back by cool_down: changed a moment ago",
    ):
        assert text in shown(140), text


def test_a_constraint_is_shown_as_it_is_judged_with_its_percentiles() -> None:
    bare = decode_snapshot(SNAPSHOT)
    seen = replace(bare.constraints[0], mean_ms=15.0, p95_ms=31.5, p99_ms=47.25, held=True)
    judged = replace(bare, constraints=[seen])
    console = Console(file=io.StringIO(), width=140)
    console.print(control_view(judged, [EARLIER, LAST]))
    assert isinstance(console.file, io.StringIO)
    line = next(line for line in console.file.getvalue().splitlines() if line.startswith("quick"))
    assert line.split()[:6] == ["quick", "15.00", "31.50", "47.25", "20.00", "75%"]


def test_a_source_that_knows_it_shows_how_far_it_is_behind() -> None:
    assert "behind" not in shown(140)
    bare = decode_snapshot(SNAPSHOT)
    source = replace(bare.tasks["numbers"], lag_items=12345)
    console = Console(file=io.StringIO(), width=100)
    late = replace(bare, tasks={**bare.tasks, "numbers": source})
    console.print(control_view(late, [EARLIER, LAST]))
    assert isinstance(console.file, io.StringIO)
    line = next(line for line in console.file.getvalue().splitlines() if line.startswith("numbers "))
    assert line.split() == ["numbers", "400", "12,345", "1"]


def test_view_fits_100_columns() -> None:
    assert max(len(line.rstrip()) for line in shown(100).splitlines()) <= 100
    assert "…" not in shown(100)


def test_a_line_says_it_all() -> None:
    cycle = Cycle(7, 0.0, decode_snapshot(SNAPSHOT), DECISION, Effect(problem="no boundary"))
    assert decision_line(cycle) == (
        "quick 24.00 of 20 ms; work 2 -> 5 replicas, numbers->work 6.0 -> 2.5 ms; infeasible;"
        " not carried out: no boundary; rebalance: queues are too long"
    )


def test_keys_that_are_divided_anew_are_a_change() -> None:
    snapshot = decode_snapshot(SNAPSHOT)
    tables = {"work": [(0, 99, 0), (100, 4095, 1)]}
    decision = replace(keep(snapshot, "static", []), key_tables=tables)
    assert changed_settings(snapshot, decision) == ["keys of work divided anew"]
    assert "work: keys divided anew, in 2 spans of groups" in explain_decision(snapshot, decision)
