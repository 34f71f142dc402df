"""Replicas are taken away slowly: to the largest number proposed within a window, and not before it is full.

    to = max of the proposals of the last window_s,   if they all are below the present number

Load that comes back within the window finds its replicas still there (the Flink autoscaler's and KEDA's
rule). A change of the task begins a new window. Where so few replicas have been seen to be enough for such a
load, and no model has to be believed, the window may be shorter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.experience import shown_enough
from penstock.policy.guards.port import Seen
from penstock.policy.guards.revise import allow, changes


@dataclass(frozen=True, slots=True)
class Proposal:
    """How many replicas were proposed, and when."""

    at_s: float
    replicas: int


@dataclass(frozen=True, slots=True)
class ScaleDownMemory:
    """The proposals below the present parallelism, for each task, the oldest first."""

    proposals: Mapping[str, tuple[Proposal, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScaleDownWindow:
    """The guard `scale_down_window`."""

    window_s: float
    shown_window_s: float | None = None
    name: ClassVar[str] = "scale_down_window"

    def initial_memory(self) -> ScaleDownMemory:
        """No proposals yet."""
        return ScaleDownMemory()

    def review(
        self, seen: Seen, proposed: Decision, memory: ScaleDownMemory
    ) -> tuple[Decision, ScaleDownMemory]:
        """Hold a scale-down until the window is full, then allow the largest number of it."""
        kept: dict[str, tuple[Proposal, ...]] = {}
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            if after > before:
                continue
            row = (*memory.proposals.get(task, ()), Proposal(seen.now_s, after))
            window_s = self._window_s(proposed, task, after)
            waited_s = seen.now_s - row[0].at_s
            if waited_s < window_s:
                kept[task] = row
                why = f"fewer replicas were enough for {waited_s:g} of {window_s:g} s"
                proposed = allow(proposed, self.name, task, before=before, allowed=before, why=why)
                continue
            # The first proposal of the next window is the oldest that is not older than the window.
            kept[task] = tuple(one for one in row if seen.now_s - one.at_s <= self.window_s)
            allowed = max(one.replicas for one in row if seen.now_s - one.at_s <= window_s)
            if allowed != after:
                why = f"{allowed} replicas were needed within the last {window_s:g} s"
                proposed = allow(proposed, self.name, task, before=before, allowed=allowed, why=why)
        return proposed, ScaleDownMemory(kept)

    def _window_s(self, proposed: Decision, task: str, replicas: int) -> float:
        if self.shown_window_s is None or not shown_enough(proposed, task, replicas):
            return self.window_s
        return min(self.window_s, self.shown_window_s)

    def settle(self, seen: Seen, issued: Decision, memory: ScaleDownMemory) -> ScaleDownMemory:
        """A task that was changed begins a new window."""
        changed = changes(seen.snapshot, issued)
        return ScaleDownMemory({task: row for task, row in memory.proposals.items() if task not in changed})
