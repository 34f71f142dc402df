"""Decisions as marks on a time line: what was changed or held back, for which task or stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock.control.decision_log import Entry
from penstock.report.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from penstock.report.history import History
from penstock.stats.snapshot import Snapshot

# A lifetime that changes by less than this share is no mark of its own: it follows every measurement a bit.
NOTABLE = 0.1


@dataclass(frozen=True, slots=True)
class Look:
    """How a kind of mark is drawn."""

    label: str
    marker: str
    colour: str


MARKS: Final = {
    "more": Look("more replicas", "^", BLUE),
    "fewer": Look("fewer replicas", "v", ORANGE),
    "lifetime": Look("batch lifetime", "o", GREEN),
    "chain": Look("chain", "D", PURPLE),
    "keys": Look("keys divided anew", "s", GREEN),
    "refused": Look("held back", "x", GREY),
    "infeasible": Look("cannot be enough", "*", VERMILION),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that a decision changed, in words too."""

    at_s: float
    kind: str
    subject: str
    text: str


def marks(history: History) -> list[Mark]:
    """All marks of a run, in the order of time."""
    found: list[Mark] = []
    for number, (snapshot, at_s) in enumerate(zip(history.snapshots, history.ends_s, strict=True)):
        if number in history.decided:
            found += marks_of(snapshot, history.decided[number], at_s)
    return found


def marks_of(snapshot: Snapshot, entry: Entry, at_s: float) -> Iterator[Mark]:
    """What one decision changed in the flow that a snapshot shows."""
    decision = entry.decision
    for name, count in decision.parallelism.items():
        before = snapshot.tasks[name].parallelism
        if count != before:
            yield Mark(
                at_s, "more" if count > before else "fewer", name, f"{name}: {before} → {count} replicas"
            )
    for name, lifetime_ms in decision.batch_lifetime_ms.items():
        known = snapshot.stream(name).batch_lifetime_ms
        if abs(lifetime_ms - (known or 0.0)) > NOTABLE * max(lifetime_ms, known or 0.0):
            text = f"{name}: lifetime {0.0 if known is None else known:.3g} → {lifetime_ms:.3g} ms"
            yield Mark(at_s, "lifetime", name, text)
    if decision.chains and _joined(decision.chains) != _joined(snapshot.chains):
        shown = [" + ".join(chain) for chain in _joined(decision.chains)]
        yield Mark(at_s, "chain", "chains", f"chains: {', '.join(shown) or 'none'}")
    for name in decision.key_tables:
        yield Mark(at_s, "keys", name, f"{name}: keys divided anew")
    for refusal in decision.refused:
        subject = refusal.task or refusal.stream or "all"
        yield Mark(at_s, "refused", subject, f"{subject}: held back by {refusal.guard}")
    if not decision.feasible:
        yield Mark(at_s, "infeasible", "all", "cannot be enough")


def _joined(chains: list[list[str]]) -> list[list[str]]:
    """The chains of more than one task: a policy need not list the others."""
    return sorted(chain for chain in chains if len(chain) > 1)
