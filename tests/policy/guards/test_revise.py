"""Taking everything back."""

import msgspec

from penstock.policy.guards.revise import refuse_everything
from tests.policy.guards.scripted import proposal, snapshot


def test_replicas_lifetimes_and_chains_stay() -> None:
    one = snapshot(a=1, b=1)
    wanted = msgspec.structs.replace(
        proposal(one, {"a": 2}), batch_lifetime_ms={"source->a": 3.0}, chains=[["a", "b"]]
    )
    left = refuse_everything(one, wanted, "test", "because")
    assert left.parallelism == {"a": 1, "b": 1}
    assert left.batch_lifetime_ms == {}
    assert left.chains == []
    assert [(refusal.task, refusal.stream, refusal.why) for refusal in left.refused] == [
        ("a", None, "because"),
        (None, "source->a", "because"),
        (None, None, "chains stay: because"),
    ]
