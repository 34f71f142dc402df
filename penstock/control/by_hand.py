"""What people change while a flow runs is a decision, too: it is logged, with who made it."""

from collections.abc import Mapping
from typing import Final, Literal

from penstock.control.decision_log import Entry
from penstock.durations import format_ms
from penstock.policy.decision import Decision, Reason

KEPT: Final = 1000
RULE: Final = "by_hand"
Mode = Literal["on", "recommend", "off"]
"""Decisions of a policy are carried out, only shown, or not made at all."""


def entry_by_hand(
    by: str,
    at_s: float,
    policy: str,
    *,
    replicas: Mapping[str, tuple[int, int]],
    lifetimes_ms: Mapping[str, tuple[float, float]],
    bounds_ms: Mapping[str, tuple[float, float]],
    paused: Mapping[str, bool],
    mode: tuple[Mode, Mode] | None,
) -> Entry:
    """What was set, each from what to what; `paused` says of sources whether they are from now on."""
    reasons = [
        *(
            Reason(rule=RULE, task=task, before=old, after=new, why=f"{task}: {old} -> {new} replicas")
            for task, (old, new) in replicas.items()
        ),
        *(
            Reason(rule=RULE, stream=stream, before=old, after=new, why=_words(stream, "lifetime", old, new))
            for stream, (old, new) in lifetimes_ms.items()
        ),
        *(
            Reason(rule=RULE, constraint=name, before=old, after=new, why=_words(name, "bound", old, new))
            for name, (old, new) in bounds_ms.items()
        ),
        *(
            Reason(rule=RULE, task=source, why=f"{source}: {'paused' if now else 'reads on'}")
            for source, now in paused.items()
        ),
    ]
    if mode is not None:
        reasons.append(
            Reason(rule=RULE, before=mode[0], after=mode[1], why=f"policy: {mode[0]} -> {mode[1]}")
        )
    decision = Decision(
        policy=policy,
        parallelism={task: new for task, (_, new) in replicas.items()},
        batch_lifetime_ms={stream: new for stream, (_, new) in lifetimes_ms.items()},
        chains=[],
        feasible=True,
        reasons=reasons,
    )
    return Entry(number=0, at_s=at_s, decision=decision, by=by)


def _words(name: str, what: str, old_ms: float, new_ms: float) -> str:
    return f"{name}: {what} {format_ms(old_ms)} -> {format_ms(new_ms)}"
