"""The port every policy implements; guards implement it too, around another policy."""

from typing import Protocol, TypeVar

import msgspec

from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot

M = TypeVar("M")


class Policy(Protocol[M]):
    """A pure function of a snapshot and of an immutable memory `M`.

    Equal arguments give equal results: no clock, no randomness, no I/O. Time is what snapshots say
    (`interval_s`). A policy never acts on what it does not know: it keeps the setting and gives a reason.
    """

    @property
    def name(self) -> str:
        """The name users select the policy by."""
        ...

    @property
    def parameters(self) -> msgspec.Struct:
        """The frozen struct of its documented parameters."""
        ...

    def initial_memory(self) -> M:
        """What it remembers before its first snapshot."""
        ...

    def decide(self, snapshot: Snapshot, memory: M) -> tuple[Decision, M]:
        """The settings this snapshot calls for, and the memory to pass with the next one."""
        ...
