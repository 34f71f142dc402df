"""Static: nothing ever changes. What every other policy is compared with.

replicas = the replicas there are
"""

import msgspec

from penstock.policy.decision import Decision, Reason
from penstock.policy.keep import keep
from penstock.stats.snapshot import Snapshot


class StaticParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """There are none."""


class Static:
    """The policy `static`."""

    name = "static"

    def __init__(self, parameters: StaticParameters) -> None:
        self.parameters = parameters

    def initial_memory(self) -> None:
        """It remembers nothing."""
        return

    def decide(self, snapshot: Snapshot, memory: None) -> tuple[Decision, None]:
        """What there is."""
        reason = Reason(rule="static", why="this policy never changes anything")
        return keep(snapshot, self.name, [reason]), memory
