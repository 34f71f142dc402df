"""The ports of guards: inspectors look at data before a policy is asked, guards at what it proposes.

Memories are immutable values and time is the sum of the intervals of the snapshots seen so far, as for
policies.
"""

import math
from dataclasses import dataclass
from typing import Protocol, TypeVar

from penstock.policy.decision import Decision, Refusal
from penstock.stats.snapshot import Snapshot

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Seen:
    """A snapshot and the time at the end of its interval."""

    snapshot: Snapshot
    now_s: float

    def intervals_since(self, then_s: float | None) -> float:
        """How many intervals ago; they are not all equally long, so to the nearest. Never is long ago."""
        return math.inf if then_s is None else round((self.now_s - then_s) / self.snapshot.interval_s)


class Inspector(Protocol[M]):
    """Says why a snapshot must not be acted on at all."""

    @property
    def name(self) -> str:
        """How refusals call it."""
        ...

    def initial_memory(self) -> M:
        """What it remembers before the first snapshot."""
        ...

    def inspect(self, seen: Seen, memory: M) -> list[Refusal]:
        """One refusal for each fault found; none means that the data may be used."""
        ...

    def settle(self, seen: Seen, issued: Decision, memory: M) -> M:
        """The memory for the next snapshot, now that it is known what was decided on this one."""
        ...


class Guard(Protocol[M]):
    """Takes back what a policy should not do now."""

    @property
    def name(self) -> str:
        """How refusals call it."""
        ...

    def initial_memory(self) -> M:
        """What it remembers before the first snapshot."""
        ...

    def review(self, seen: Seen, proposed: Decision, memory: M) -> tuple[Decision, M]:
        """What is left of the proposal, each refusal recorded in it."""
        ...

    def settle(self, seen: Seen, issued: Decision, memory: M) -> M:
        """The memory for the next snapshot, now that all guards have spoken."""
        ...


class StatelessGuard:
    """What guards without a memory have in common."""

    def initial_memory(self) -> None:
        """Nothing."""
        return

    def settle(self, seen: Seen, issued: Decision, memory: None) -> None:  # noqa: ARG002
        """Nothing to remember."""
        return
