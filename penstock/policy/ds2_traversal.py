"""How many replicas every task needs, in one walk from the sources (DS2, OSDI 2018, equations 7 and 8).

    pi_i = ceil( r_i / (o_i[lambda_p] / p_i) ),   r_i = sum over senders j of o_j[lambda_o]*             (7)
    o_j[lambda_o]* = lambda_src of a source, otherwise (o_j[lambda_o] / o_j[lambda_p]) * r_j             (8)

The output passed downstream is that of the real-valued optimum, not of its ceiling. In the paper every stream
out of a task carries the task's whole output (A_ij = 1). Here a stream carries the share of it that was
measured; only where that is unknown, all of it. Tasks that cannot be scaled take part in the walk with what
they let through. 0/0 (an idle task) and x/0 (a task without a rate) are no numbers of replicas: they stay
unknown.
"""

import math
from dataclasses import dataclass

from penstock.policy.ds2_rates import Knowledge, true_rates
from penstock.policy.measured import finite
from penstock.stats.snapshot import Snapshot, StreamStats

# A rate that is a multiple of a replica's capacity must not need one more because a number was rounded.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Need:
    """What equations 7 and 8 say of one task; None for what cannot be known, and then the task to blame."""

    task: str
    knowledge: Knowledge
    target_per_s: float | None = None
    per_replica_per_s: float | None = None
    selectivity: float | None = None
    output_per_s: float | None = None
    blamed: str | None = None

    @property
    def optimum(self) -> float | None:
        """The real-valued number of replicas."""
        if self.target_per_s is None or self.per_replica_per_s is None:
            return None
        return finite(self.target_per_s / self.per_replica_per_s)


def replicas(optimum: float) -> int:
    """The ceiling of equation 7; at least one replica, also for a task without input."""
    return max(1, math.ceil(optimum * (1 - _ROUNDING)))


def traverse(snapshot: Snapshot) -> dict[str, Need]:
    """The need of every task, sources included, in topological order."""
    needs: dict[str, Need] = {}
    for name in snapshot.topological_order():
        inputs = [(needs[stream.sender], _share(snapshot, stream)) for stream in snapshot.streams_into(name)]
        needs[name] = _source(snapshot, name) if not inputs else _need(snapshot, name, inputs)
    return needs


def _share(snapshot: Snapshot, stream: StreamStats) -> float:
    """Which share of its sender's output a stream carries.

    A source has sent each of its items on all of its streams, or on some: how many it has of the items that
    it read. What a task emits is the sum over its streams. With one stream nothing is to be shared.
    """
    streams = snapshot.streams_out_of(stream.sender)
    sent = {one.name: finite(one.emitted_total) for one in streams}
    known = [count for count in sent.values() if count is not None]
    if len(streams) == 1 or len(known) < len(streams):
        return 1.0
    sender = snapshot.tasks[stream.sender]
    whole = finite(sender.processed_total) if sender.kind == "source" else sum(known)
    return (sent[stream.name] or 0.0) / whole if whole else 1.0


def _source(snapshot: Snapshot, name: str) -> Need:
    rate = finite(snapshot.tasks[name].rate_total)
    if rate is None:
        return Need(name, Knowledge.MISSING, blamed=name)
    return Need(name, Knowledge.KNOWN, target_per_s=rate, output_per_s=rate)


def _need(snapshot: Snapshot, name: str, inputs: list[tuple[Need, float]]) -> Need:
    """`inputs` are the senders, each with the share of its output that comes here."""
    rates = true_rates(snapshot.tasks[name])
    per_replica = rates.processing_per_s and rates.processing_per_s / snapshot.tasks[name].parallelism
    silent = [sender for sender, _ in inputs if sender.output_per_s is None]
    if silent:
        # What follows a sender whose output is unknown is unknown too; one that was not measured comes first.
        sender = next((one for one in silent if one.knowledge is not Knowledge.IDLE), silent[0])
        knowledge = Knowledge.IDLE if sender.knowledge is Knowledge.IDLE else Knowledge.MISSING
        return Need(name, knowledge, None, per_replica, rates.selectivity, None, sender.blamed or sender.task)
    target = sum((sender.output_per_s or 0.0) * share for sender, share in inputs)
    output = None if rates.selectivity is None else finite(rates.selectivity * target)
    if target == 0:
        output = 0.0
    blamed = None if rates.knowledge is Knowledge.KNOWN else name
    return Need(name, rates.knowledge, target, per_replica, rates.selectivity, output, blamed)
