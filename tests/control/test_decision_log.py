"""What is known of a decision at once, later, and never."""

from penstock.control.decision_log import DecisionLog, Entry, Observed
from penstock.control.engine import Effect
from penstock.policy.decision import Decision

SEEN = Observed(latency_ms={"quick": 3.0}, parallelism={"work": 2}, utilization={"work": 0.5})


def decision(replicas: int) -> Decision:
    return Decision(
        policy="p",
        parallelism={"work": replicas},
        batch_lifetime_ms={},
        chains=[],
        feasible=True,
        reasons=[],
    )


def test_an_entry_gets_its_effect_then_what_was_observed() -> None:
    finished: list[Entry] = []
    log = DecisionLog(finished.append)
    log.complete(SEEN)
    log.decided(0, 1.0, decision(2))
    log.took_effect(Effect(after_ms=40.0))
    assert log.entries() == [Entry(number=0, at_s=1.0, decision=decision(2), effect=Effect(after_ms=40.0))]
    assert finished == []
    log.complete(SEEN)
    assert finished == log.entries()
    assert finished[0].observed == SEEN
    log.complete(None)
    assert len(finished) == 1


def test_only_the_latest_are_kept_and_all_are_handed_on() -> None:
    finished: list[Entry] = []
    log = DecisionLog(finished.append, kept=3)
    for number in range(5):
        log.decided(number, float(number), decision(1))
        log.complete(None)
    assert [entry.number for entry in log.entries()] == [2, 3, 4]
    assert [entry.number for entry in finished] == [0, 1, 2, 3, 4]
