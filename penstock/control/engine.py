"""The port between the controller and whatever runs the flow."""

from typing import Protocol

import msgspec

from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a decision was carried out; an engine that changed nothing has none.

    `after_ms` is the time from the decision until everybody obeys it, None if that was not seen. `gap_ms` is
    how long the sources stood still for a boundary; it is for the log. `pools` are those that were resized,
    `limited` the tasks that got fewer replicas than decided because there are no more slots.
    """

    after_ms: float | None = None
    gap_ms: float | None = None
    pools: dict[str, int] = {}
    limited: dict[str, int] = {}
    problem: str | None = None


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """A batch ended and the next began; the sources stood still for `gap_ms`, until `ended_at_s`.

    `ended_at_s` is by a clock that nobody sets, the one the controller is given for this.
    """

    ended_at_s: float
    gap_ms: float


class Engine(Protocol):
    """Something that runs a flow: Spark or the simulator."""

    def observe(self) -> Snapshot | None:
        """What the flow did in the interval that ends now; None when the flow has ended."""
        ...

    def apply(self, decision: Decision) -> Effect | None:
        """Bring the flow to these settings; they may take effect later."""
        ...

    def boundary(self) -> Boundary | None:
        """The last boundary that has ended, whoever began it: a decision, the timer of commits, or a user.

        None if there was none; one that was told before may be told again.
        """
        ...
