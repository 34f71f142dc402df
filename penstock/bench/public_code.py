"""Nephele with the margins of its public code, put together from the documented parameters of `nephele`.

The thesis gives batching 80 % of the time the tasks leave and the queues the other 20 %, so both together use
the whole bound, and what neither counts (the last stream's transport and queue) comes on top. The public code
leaves a margin: its queue budget is 0.2 x 0.9 of that time, divided by the number of streams. It also clamps
the fitting factor to [0.8, 1.2], ignores changes under 4 % and rests for 2 intervals after adding replicas.
The same queue budget results from a scaling weight of 1 - 0.18 / streams beside a batching weight of 0.8.
"""

import msgspec

from penstock.policy.decision import Decision
from penstock.policy.nephele import Nephele, NepheleMemory, NepheleParameters
from penstock.stats.snapshot import Snapshot


class PublicCodeMemory(msgspec.Struct, frozen=True):
    """What the two halves remember."""

    batching: NepheleMemory
    scaling: NepheleMemory


class PublicCodeNephele:
    """Batching and chaining of the thesis; scaling with the public code's queue budget."""

    name = "nephele-public-code"

    def __init__(self, streams: int) -> None:
        self.parameters = NepheleParameters(
            batching_weight=1.0 - 0.18 / streams,
            batching="off",
            chaining="off",
            fit_limits=(0.8, 1.2),
            min_change=0.04,
            inactive_intervals=2,
        )
        self._batching = Nephele(NepheleParameters(scaling="off"))
        self._scaling = Nephele(self.parameters)

    def initial_memory(self) -> PublicCodeMemory:
        """Both halves at their beginning."""
        return PublicCodeMemory(self._batching.initial_memory(), self._scaling.initial_memory())

    def decide(self, snapshot: Snapshot, memory: PublicCodeMemory) -> tuple[Decision, PublicCodeMemory]:
        """Lifetimes and chains from the one half, replicas from the other."""
        batching, batching_memory = self._batching.decide(snapshot, memory.batching)
        scaling, scaling_memory = self._scaling.decide(snapshot, memory.scaling)
        decision = msgspec.structs.replace(
            batching,
            policy=self.name,
            parallelism=scaling.parallelism,
            feasible=scaling.feasible,
            reasons=[*batching.reasons, *scaling.reasons],
        )
        return decision, PublicCodeMemory(batching_memory, scaling_memory)
