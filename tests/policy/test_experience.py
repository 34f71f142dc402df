"""What was measured with other replicas: kept, looked up, and used by nephele."""

from typing import Any

import msgspec
import pytest

from penstock.policy.experience import Experience, closest, is_hiccup, remembered
from penstock.policy.guards.compose import guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.nephele import Nephele, NepheleMemory, NepheleParameters
from penstock.stats.snapshot import Snapshot, decode_snapshot
from tests.policy.snapshots import prime_test

RATE_PER_S = 375_000.0
SLOW, FAST = Experience(2, 100.0, 1.0), Experience(2, 200.0, 5.0)


def primes(replicas: int, wait_ms: float, rate_per_s: float = RATE_PER_S, **more: Any) -> Snapshot:
    gap_ms = 1000.0 * replicas / rate_per_s
    return prime_test(parallelism=replicas, interarrival_ms=gap_ms, queue_wait_ms=wait_ms, **more)


def asked(*snapshots: Snapshot, experiences: int = 10) -> tuple[int, list[str]]:
    """The replicas that are asked for at last, and by which rules."""
    policy = Nephele(NepheleParameters(experiences=experiences, inactive_intervals=0))
    memory: NepheleMemory = policy.initial_memory()
    for snapshot in snapshots:
        decision, memory = policy.decide(snapshot, memory)
    return decision.parallelism["prime"], [one.rule for one in decision.reasons if one.task == "prime"]


def test_the_closest_is_at_the_lowest_rate_that_is_no_lower() -> None:
    known = (FAST, SLOW, Experience(3, 120.0, 0.1))
    assert closest(known, 2, 90.0) == SLOW
    assert closest(known, 2, 104.0) == SLOW, "about the same rate"
    assert closest(known, 2, 150.0) == FAST
    assert closest(known, 2, 250.0) is None
    assert closest(known, 4, 1.0) is None


def test_what_is_new_takes_the_place_of_what_was_known_of_the_same() -> None:
    known = remembered({}, primes(50, 3.0), 10)
    known = remembered(known, primes(50, 2.0, 1.5 * RATE_PER_S), 10)
    known = remembered(known, primes(50, 4.0, 1.01 * RATE_PER_S), 10)
    assert [(one.replicas, one.wait_ms) for one in known["prime"]] == [(50, 2.0), (50, 4.0)]
    assert known["prime"][1].rate_per_s == pytest.approx(1.01 * RATE_PER_S)
    assert [one.wait_ms for one in remembered(known, primes(60, 1.0), 2)["prime"]] == [4.0, 1.0]


def test_nothing_is_known_where_nothing_was_measured_or_wanted() -> None:
    assert remembered({}, primes(50, 3.0), 0) == {}
    assert remembered({}, prime_test(interarrival_ms=None), 10) == {}
    assert remembered({}, prime_test(elastic=False), 10) == {}


def test_replicas_go_when_fewer_were_enough_before() -> None:
    now = primes(60, 2.9)
    assert asked(now) == (52, ["rebalance"])
    assert asked(primes(50, 3.0), now) == (50, ["rebalance", "experience"])
    assert asked(primes(50, 3.0, 1.2 * RATE_PER_S), now)[0] == 50, "at a higher rate even"
    assert asked(primes(50, 3.0), now, experiences=0) == (52, ["rebalance"])


def test_the_model_may_be_confirmed_by_experience_when_replicas_go() -> None:
    assert asked(primes(52, 3.0), primes(60, 2.9)) == (52, ["rebalance", "experience"])
    stays = primes(52, 3.9)
    assert asked(stays, stays) == (52, ["rebalance"]), "nobody goes: nothing to confirm"


def test_what_experience_shows_goes_sooner_through_the_guards() -> None:
    """Fifty carry the load, a peak takes sixty, and the load comes back."""

    def decisions_until_fifty(shown_window_s: float | None) -> int:
        guards = GuardParameters(scale_down_window_s=30, scale_down_shown_window_s=shown_window_s)
        policy = guarded(Nephele(NepheleParameters(experiences=10, inactive_intervals=0)), guards)
        _, memory = policy.decide(primes(50, 3.9), policy.initial_memory())
        for count in range(1, 20):
            decision, memory = policy.decide(primes(60, 2.9 + count / 1000), memory)
            if decision.parallelism["prime"] == 50:
                return count
        raise AssertionError("sixty for ever")

    assert decisions_until_fifty(None) == 7
    assert decisions_until_fifty(5.0) == 2


def test_experience_that_does_not_fit_changes_nothing() -> None:
    now = primes(60, 2.9)
    assert asked(primes(50, 3.0, 0.9 * RATE_PER_S), now)[0] == 52, "less came then"
    assert asked(primes(50, 4.2), now)[0] == 52, "it was not enough"
    assert asked(primes(50, 3.0), primes(50, 4.2), now)[0] == 52, "it is not enough any more"
    assert asked(primes(50, 3.0), primes(60, 2.9, bound_ms=15.0))[0] > 52, "the bound is tighter now"


def test_nobody_goes_while_items_wait_too_long() -> None:
    assert asked(primes(50, 3.0), primes(60, 4.2))[0] > 60


def test_a_hiccup_adds_no_replicas_until_it_lasts() -> None:
    assert is_hiccup((SLOW,), Experience(2, 100.0, 2.1))
    assert not is_hiccup((SLOW,), Experience(2, 100.0, 1.9))
    usual, late = primes(50, 3.0), primes(50, 9.0)
    assert asked(usual, late) == (50, ["rebalance", "hiccup"])
    assert asked(usual, late, late)[0] > 50
    assert asked(usual, late, experiences=0)[0] > 50
    assert asked(usual, primes(50, 9.0, 1.2 * RATE_PER_S))[0] > 50, "more comes: that is no hiccup"


def test_a_hiccup_with_all_replicas_is_no_reason_to_call_a_bound_infeasible() -> None:
    policy = Nephele(NepheleParameters(experiences=10, inactive_intervals=0))
    memory: NepheleMemory = policy.initial_memory()
    feasible = []
    for wait_ms in (3.0, 300.0, 300.0):
        decision, memory = policy.decide(primes(50, wait_ms, max=70), memory)
        feasible.append(decision.feasible)
    assert feasible == [True, True, False]


def with_a_hopeless_one(snapshot: Snapshot) -> Snapshot:
    """The same, and beside prime a task that can do nothing for the constraint it has of its own."""
    hopeless = {"parallelism": 5, "max": 5, "queue_wait_ms": 300.0}
    beside = msgspec.to_builtins(primes(50, 3.0))
    beside["tasks"] = {
        **msgspec.to_builtins(snapshot)["tasks"],
        "other": {**beside["tasks"]["prime"], **hopeless},
    }
    text = msgspec.json.encode([beside["streams"], beside["constraints"]]).replace(b"prime", b"other")
    streams, (constraint,) = msgspec.json.decode(text)
    beside["streams"] += streams
    beside["constraints"].append({**constraint, "name": "c2"})
    return decode_snapshot(beside)


def test_a_hiccup_hides_no_other_bound_that_cannot_be_kept() -> None:
    policy = Nephele(NepheleParameters(experiences=10, inactive_intervals=0))
    usual, late = primes(50, 3.0, max=70), primes(50, 300.0, max=70)
    _, memory = policy.decide(usual, policy.initial_memory())
    assert policy.decide(late, memory)[0].feasible
    decision, _ = policy.decide(with_a_hopeless_one(late), memory)
    assert "hiccup" in [reason.rule for reason in decision.reasons]
    assert not decision.feasible
