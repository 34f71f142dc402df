"""What people decide is logged; a policy that is off is not asked, in a run or when it is decided again."""

from penstock.control.by_hand import entry_by_hand
from penstock.control.decider import Decider
from penstock.control.recorded_snapshot import RecordedSnapshot, decode_recorded, encode_recorded
from penstock.policy.registry import create_policy
from tests.report.recordings import snapshot


def test_each_change_is_a_reason_with_from_and_to() -> None:
    entry = entry_by_hand(
        "dashboard",
        7.0,
        "nephele",
        replicas={"work": (2, 5)},
        lifetimes_ms={"source->work": (2.0, 0.0)},
        bounds_ms={"c": (10.0, 25.0)},
        paused={"source": True, "other": False},
        mode=("on", "off"),
    )
    assert entry.by == "dashboard"
    assert (entry.decision.parallelism, entry.decision.batch_lifetime_ms) == (
        {"work": 5},
        {"source->work": 0.0},
    )
    told = [(reason.before, reason.after, reason.why) for reason in entry.decision.reasons]
    assert told == [
        (2, 5, "work: 2 -> 5 replicas"),
        (2.0, 0.0, "source->work: lifetime 2 ms -> 0 ms"),
        (10.0, 25.0, "c: bound 10 ms -> 25 ms"),
        (None, None, "source: paused"),
        (None, None, "other: reads on"),
        ("on", "off", "policy: on -> off"),
    ]


def test_a_policy_that_is_off_is_not_asked() -> None:
    busy = snapshot(busy=1.0, wait_ms=500.0, replicas=2)
    asked = Decider(create_policy("threshold")).decide(busy)
    assert asked.parallelism["work"] > 2, "it would have something to say"
    silent = Decider(create_policy("threshold")).decide(busy, is_asked=False)
    assert silent.parallelism == {"work": 2}
    assert [reason.rule for reason in silent.reasons] == ["off"]


def test_a_recording_tells_that_it_was_off() -> None:
    for is_asked in (True, False):
        line = encode_recorded(RecordedSnapshot(snapshot=snapshot(), at_s=5.0, is_asked=is_asked))
        assert decode_recorded(line).is_asked is is_asked
        assert (b"is_asked" in line) is not is_asked, "recordings of before say nothing of it"
