"""The JSON of a decision."""

import json

import msgspec

from penstock.policy.decision import Decision, Reason, Refusal, encode_decision

DECISION = Decision(
    policy="nephele",
    parallelism={"prime": 58},
    batch_lifetime_ms={"source->prime": 4.1},
    chains=[["decode", "merge"]],
    feasible=True,
    reasons=[Reason(rule="rebalance", constraint="c1", task="prime", before=50, after=58, why="queues")],
)


def test_the_documented_format() -> None:
    assert json.loads(encode_decision(DECISION)) == {
        "policy": "nephele",
        "parallelism": {"prime": 58},
        "batch_lifetime_ms": {"source->prime": 4.1},
        "chains": [["decode", "merge"]],
        "feasible": True,
        "reasons": [
            {"rule": "rebalance", "constraint": "c1", "task": "prime", "from": 50, "to": 58, "why": "queues"}
        ],
    }


def test_a_refusal_is_shown_when_there_is_one() -> None:
    refusal = Refusal(guard="bounds", task="prime", before=50, after=90, why="at most 70")
    decision = Decision(
        policy="static",
        parallelism={},
        batch_lifetime_ms={},
        chains=[],
        feasible=True,
        reasons=[],
        refused=[refusal],
    )
    assert json.loads(encode_decision(decision))["refused"] == [
        {"guard": "bounds", "task": "prime", "from": 50, "to": 90, "why": "at most 70"}
    ]


def test_round_trip() -> None:
    assert msgspec.json.decode(encode_decision(DECISION), type=Decision) == DECISION
