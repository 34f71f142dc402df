"""What the dashboard tells besides figures: decisions with what they changed, events, and a flow's state."""

import msgspec

from penstock.control.by_hand import RULE, Mode
from penstock.control.decision_log import Entry
from penstock.control.events import Event
from penstock.operate.protocol import ConstraintNow, FlowNow, LatencyNow, TaskNow
from penstock.policy.decision import Reason, Refusal
from penstock.report.decision_marks import marks_of
from penstock.stats.snapshot import Snapshot

HIDDEN = "hidden: this may show items or keys; sign in with the token"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a decision changed or held back; `kind` is one of `report.decision_marks`."""

    kind: str
    subject: str
    text: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, in words where there are words for it; `by` is who made it by hand."""

    number: int
    at_s: float
    policy: str
    by: str | None
    changes: list[Change]
    reasons: list[Reason]
    refused: list[Refusal]
    feasible: bool
    after_ms: float | None = None
    gap_ms: float | None = None
    problem: str | None = None


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """A flow that runs, in this moment."""

    state: str
    message: str
    slots: int
    restarts: int
    mode: Mode | None
    problem: str | None
    tasks: list[TaskNow]
    lifetimes_ms: dict[str, float]
    constraints: list[ConstraintNow]
    latency: dict[str, LatencyNow]
    marks: str


def now_of(flow: FlowNow, mode: Mode | None, marks: str) -> Now:
    """Without what is told elsewhere; `marks` changes when there are new decisions or events."""
    return Now(
        state=flow.state,
        message=flow.message,
        slots=flow.slots,
        restarts=flow.restarts,
        mode=mode,
        problem=None if flow.control is None else flow.control.problem,
        tasks=flow.tasks,
        lifetimes_ms=flow.lifetimes_ms,
        constraints=flow.constraints,
        latency=flow.latency,
        marks=marks,
    )


def told_of(entry: Entry, snapshot: Snapshot | None) -> Told:
    """A decision on that snapshot; None if it is not known any more, then nobody can say what it changed."""
    decision, effect = entry.decision, entry.effect
    if entry.by is not None:
        changes = [_by_hand(reason) for reason in decision.reasons]
    else:
        found = [] if snapshot is None else marks_of(snapshot, entry, entry.at_s)
        changes = [Change(kind=mark.kind, subject=mark.subject, text=mark.text) for mark in found]
    return Told(
        number=entry.number,
        at_s=entry.at_s,
        policy=decision.policy,
        by=entry.by,
        changes=changes,
        reasons=decision.reasons,
        refused=decision.refused,
        feasible=decision.feasible,
        after_ms=None if effect is None else effect.after_ms,
        gap_ms=None if effect is None else effect.gap_ms,
        problem=None if effect is None else effect.problem,
    )


def _by_hand(reason: Reason) -> Change:
    subject = reason.task or reason.stream or reason.constraint or "policy"
    return Change(kind=RULE, subject=subject, text=reason.why)


def is_loud(told: Told) -> bool:
    """Whether something was changed, held back or went wrong, or somebody did it by hand."""
    return bool(told.changes or told.by or told.problem)


def without_items(event: Event) -> Event:
    """For those who have no token."""
    return event if event.detail is None else msgspec.structs.replace(event, detail=HIDDEN)
