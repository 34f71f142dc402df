"""DS2: the parallelism of the whole graph from true rates, in one step (Kalavri et al., OSDI 2018).

    replicas of a task = ceil( rate that comes in / rate one replica can process )
    rate that comes in = sum of what its senders put out if they keep up
                       = rate of a source, or selectivity * rate that comes in, of the sender

Rates are per second of useful time: waiting for input or output does not count. The estimate lives in
`ds2_rates`, `ds2_traversal` and `ds2_plan`; when to believe it is the scaling manager's matter,
`ds2_manager`.
"""

from penstock.policy.decision import Decision
from penstock.policy.ds2_manager import ManagerMemory, manage
from penstock.policy.ds2_parameters import Ds2Parameters
from penstock.stats.snapshot import Snapshot

__all__ = ["Ds2", "Ds2Parameters"]


class Ds2:
    """The policy `ds2`."""

    name = "ds2"

    def __init__(self, parameters: Ds2Parameters) -> None:
        self.parameters = parameters

    def initial_memory(self) -> ManagerMemory:
        """Nothing gathered, nothing decided."""
        return ManagerMemory()

    def decide(self, snapshot: Snapshot, memory: ManagerMemory) -> tuple[Decision, ManagerMemory]:
        """What the scaling manager does with the estimate of this snapshot."""
        return manage(self.name, self.parameters, snapshot, memory)
