"""What a user hears of: once when it begins, once when it ends."""

from typing import Any

from penstock.control.engine import Effect
from penstock.control.loop import Cycle
from penstock.control.notices import Notices
from penstock.policy.decision import Decision, Reason, Refusal
from tests.control.steady_task import loaded

HOLE = Refusal(guard="missing_data", task="work", why="only 1 of 2 replicas of 'work' reported")


def cycle(*, effect: Effect | None = None, **changes: Any) -> Cycle:
    fields: dict[str, Any] = {
        "policy": "p",
        "parallelism": {"work": 2},
        "batch_lifetime_ms": {},
        "chains": [],
        "feasible": True,
        "reasons": [Reason(rule="rebalance", why="all replicas are needed")],
    }
    return Cycle(0, 0.0, loaded(100, 2), Decision(**{**fields, **changes}), effect)


def test_an_infeasible_constraint_is_told_once_and_so_is_its_end() -> None:
    notices = Notices()
    told = [notices.of(cycle(feasible=feasible)) for feasible in [True, False, True, False] + [True] * 8]
    assert [message for messages in told for message in messages] == [
        "constraints cannot be kept with the replicas allowed: all replicas are needed",
        "constraints can be kept again",
    ]
    assert told[1]
    assert told[-3], "it is over when it has not been there for a while"


def test_an_interval_without_data_says_nothing_about_feasibility() -> None:
    notices = Notices()
    assert len(notices.of(cycle(feasible=False))) == 1
    assert [notices.of(cycle(refused=[HOLE])) for _ in range(9)] == [
        ["nothing is decided, the configuration stays: only 1 of 2 replicas of 'work' reported"],
        *[[]] * 8,
    ]
    later = [message for _ in range(9) for message in notices.of(cycle(feasible=False))]
    assert later == ["measurements are complete again"]


def test_a_flow_that_starts_may_be_silent_for_a_while() -> None:
    notices = Notices()
    assert [notices.of(cycle(refused=[HOLE])) for _ in range(2)] == [[], []]
    assert notices.of(cycle()) == []
    never = Notices()
    assert [len(never.of(cycle(refused=[HOLE]))) for _ in range(5)] == [0, 0, 1, 0, 0]


def test_a_boundary_is_no_news() -> None:
    at_a_boundary = Refusal(guard="boundary", why="the sources stood still for 300 ms at a boundary")
    assert Notices().of(cycle(refused=[at_a_boundary], feasible=False)) == []


def test_nothing_is_told_of_constraints_while_java_compiles() -> None:
    warming = Refusal(guard="warm_up", why="chains stay: 2 of 6 s since the start")
    assert Notices().of(cycle(refused=[warming], feasible=False)) == []


def test_the_reason_told_is_the_one_that_speaks_of_it() -> None:
    hopeless = Reason(rule="infeasible", why="c1 would still queue 9 ms")
    reasons = [hopeless, Reason(rule="chain", why="a and b fit in one process")]
    window = Refusal(guard="scale_down_window", why="fewer replicas were enough for 2 of 15 s")
    budget = Refusal(guard="slot_budget", why="there are 4 slots")
    begins = "constraints cannot be kept with the replicas allowed: "
    first = Notices().of(cycle(feasible=False, reasons=reasons, refused=[window]))
    assert first == [begins + "c1 would still queue 9 ms"]
    second = Notices().of(cycle(feasible=False, reasons=reasons, refused=[budget, window]))
    assert second == [begins + "there are 4 slots"]


def test_missing_slots_and_what_was_not_carried_out_are_told() -> None:
    notices = Notices()
    short = Effect(limited={"work": 5})
    told = [notices.of(cycle(effect=short)), notices.of(cycle(effect=short))]
    assert told == [["there are not enough task slots: work gets 5"], []]
    failed = notices.of(cycle(effect=Effect(problem="the running batch did not end")))
    assert failed == ["a decision was not carried out: the running batch did not end"]
