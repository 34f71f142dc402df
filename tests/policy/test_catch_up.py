"""What has piled up before a source is drained in the time that it says, by `ds2` and by `nephele`."""

import json
from typing import Any

import msgspec
import pytest

from penstock.policy.catch_up import backlogs, behind, with_drained
from penstock.policy.decision import Decision
from penstock.policy.ds2 import Ds2, Ds2Parameters
from penstock.policy.nephele import Nephele, NepheleParameters
from penstock.stats.snapshot import Snapshot, decode_snapshot, encode_snapshot
from tests.policy.linear_flows import WORD_COUNT
from tests.policy.snapshots import prime_test


def behind_by(snapshot: Snapshot, lag_items: float | None, **source: Any) -> Snapshot:
    changes = {"lag_items": lag_items, "catch_up_s": 30.0, **source}
    task = msgspec.structs.replace(snapshot.tasks["source"], **changes)
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, "source": task})


def words(replicas: int, lag_items: float | None, **source: Any) -> Snapshot:
    """16,667 sentences/s arrive, and a replica of flat_map takes 1,667."""
    counts = {"flat_map": replicas, "count": 2 * replicas}
    return behind_by(WORD_COUNT.snapshot(counts), lag_items, **source)


def ds2(snapshot: Snapshot) -> Decision:
    policy = Ds2(Ds2Parameters())
    return policy.decide(snapshot, policy.initial_memory())[0]


def nephele(snapshot: Snapshot, **parameters: Any) -> Decision:
    policy = Nephele(NepheleParameters(chaining="off", batching="off", **parameters))
    return policy.decide(snapshot, policy.initial_memory())[0]


def said(decision: Decision) -> list[str]:
    return [reason.why for reason in decision.reasons if reason.rule == "catch_up"]


def test_a_backlog_is_more_than_what_arrives_in_a_quarter_of_a_second() -> None:
    (one,) = backlogs(words(1, 500_000))
    assert one.more_per_s == pytest.approx(500_000 / 30)
    assert backlogs(words(1, 4_000)) == []
    assert [one.lag_items for one in backlogs(words(1, 5, rate_total=0.0))] == [5]


@pytest.mark.parametrize("unknown", ["lag_items", "rate_total", "catch_up_s"])
def test_what_is_not_known_is_no_backlog(unknown: str) -> None:
    snapshot = words(1, 500_000)
    source = msgspec.structs.replace(snapshot.tasks["source"], **{unknown: None})
    lacking = msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, "source": source})
    assert backlogs(lacking) == []
    assert with_drained(lacking, []) is lacking


def test_what_is_drained_comes_through_the_tasks_behind_its_source() -> None:
    snapshot = words(1, 500_000)
    assert behind(snapshot, backlogs(snapshot)) == ["flat_map", "count"]
    assert behind(snapshot, []) == []


def test_ds2_plans_for_what_arrives_and_for_the_backlog_over_the_time() -> None:
    assert ds2(words(1, 500_000)).parallelism == {"flat_map": 20, "count": 40}
    assert ds2(words(1, 500_000, catch_up_s=60.0)).parallelism == {"flat_map": 15, "count": 30}
    assert ds2(words(1, 500_000, catch_up_s=None)).parallelism == {"flat_map": 10, "count": 20}
    assert ds2(words(1, None)).parallelism == {"flat_map": 10, "count": 20}


def test_ds2_says_it_in_words() -> None:
    assert said(ds2(words(1, 500_000))) == [
        "source is 500,000 items behind: to drain them in 30 s it must read 16666.7 items/s more than the"
        " 16666.7 that arrive"
    ]
    assert said(ds2(words(1, 100))) == []


def test_ds2_takes_no_replica_away_before_a_backlog_is_drained() -> None:
    draining = ds2(words(20, 100_000))
    assert draining.parallelism == {"flat_map": 20, "count": 40}
    assert said(draining)[1:] == [
        "12 would be enough for what is left; flat_map keeps 20 until it is drained",
        "24 would be enough for what is left; count keeps 40 until it is drained",
    ]
    assert ds2(words(20, 100)).parallelism == {"flat_map": 10, "count": 20}


def overloaded(lag_items: float | None, replicas: int = 4, **source: Any) -> Snapshot:
    """A tester that is busy all the time, at 1 ms an item; 3,000 items/s arrive in the interval of 5 s."""
    work: dict[str, Any] = {
        "parallelism": replicas,
        "service_ms": 1.0,
        "interarrival_ms": 0.9,
        "utilization": 1.0,
        "utilization_max": 1.0,
        "processed_total": replicas * 5000,
        "emitted_total": replicas * 5000,
        "useful_s": 5.0,
    }
    return behind_by(prime_test(**work), lag_items, rate_total=3000.0, **source)


def test_nephele_adds_what_drains_the_backlog_and_not_twice_as_many() -> None:
    assert nephele(overloaded(None)).parallelism == {"prime": 9}
    # 3,000 + 90,000 / 30 items/s, each 1 ms of a replica that is busy for 0.9 of its time
    assert nephele(overloaded(90_000)).parallelism == {"prime": 7}
    assert nephele(overloaded(90_000, catch_up_s=10.0)).parallelism == {"prime": 14}


def test_nephele_keeps_the_replicas_until_it_is_drained() -> None:
    decision = nephele(overloaded(90_000, replicas=8))
    assert decision.parallelism == {"prime": 8}
    assert said(decision) == [
        "source is 90,000 items behind: to drain them in 30 s it must read 3000 items/s more than the 3000"
        " that arrive",
        "7 replicas of prime take 6000 items/s, which drains the backlog in time; none is taken away before"
        " it is drained",
    ]


def test_nephele_does_not_take_what_waited_for_a_backlog_for_the_load() -> None:
    policy = Nephele(NepheleParameters(chaining="off", batching="off", inactive_intervals=0))
    _, memory = policy.decide(overloaded(90_000), policy.initial_memory())
    late = behind_by(prime_test(parallelism=50, queue_wait_ms=5000.0), 0)
    decision, memory = policy.decide(late, memory)
    assert decision.parallelism == {"prime": 50}
    (why,) = said(decision)
    assert why.startswith("a backlog was drained in this interval")
    decision, _ = policy.decide(late, memory)
    assert decision.parallelism["prime"] > 50, "what waits in an interval without a backlog is the load"


def test_nephele_stays_within_limits_and_keeps_what_the_queues_need() -> None:
    assert nephele(overloaded(1e9)).parallelism == {"prime": 520}
    quiet = prime_test(processed_total=1_875_000, emitted_total=1_875_000, useful_s=3.0)
    wanted = nephele(quiet).parallelism["prime"]
    decision = nephele(behind_by(quiet, 400_000))
    assert decision.parallelism["prime"] >= max(50, wanted)


def test_a_chain_is_drained_by_its_first_task() -> None:
    snapshot = overloaded(90_000)
    more = msgspec.structs.replace(snapshot.tasks["prime"], utilization=0.1, interarrival_ms=10.0)
    raw = json.loads(encode_snapshot(snapshot))
    raw["tasks"]["more"] = msgspec.to_builtins(more)
    raw["streams"][1]["from"] = "more"
    raw["streams"].append({"from": "prime", "to": "more", "wiring": "forward"})
    raw["constraints"], raw["chains"] = [], [["prime", "more"]]
    assert nephele(decode_snapshot(raw)).parallelism == {"prime": 14, "more": 14}


def test_snapshots_of_before_are_read_and_decided_as_then() -> None:
    recorded = json.loads(encode_snapshot(WORD_COUNT.snapshot({"flat_map": 1, "count": 1})))
    recorded["tasks"]["source"]["lag_items"] = 500_000
    assert "catch_up_s" not in recorded["tasks"]["source"]
    assert ds2(decode_snapshot(recorded)).parallelism == {"flat_map": 10, "count": 20}
    again = decode_snapshot(encode_snapshot(words(1, 500_000)))
    assert again.tasks["source"].catch_up_s == 30.0
