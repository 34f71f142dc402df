"""What has piled up before a source, and what it takes to drain it in the time that its `catch_up_s` says.

    target rate = rate that arrives + lag / catch_up         (as the autoscaler of Flink has it)

While there is a backlog no replicas are taken away behind its source. The target falls with the lag; replicas
that followed it down would drain the same share of what is left in each `catch_up_s`, and never all of it.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from penstock.policy.decision import Reason
from penstock.policy.ds2_traversal import Need, traverse
from penstock.policy.measured import finite
from penstock.stats.snapshot import Snapshot

RULE = "catch_up"

# What arrives in this time and is not read yet is on its way, and no backlog.
_ON_ITS_WAY_S = 0.25


@dataclass(frozen=True, slots=True)
class Backlog:
    """So many items wait before a source while others arrive, and are to be drained in `catch_up_s`."""

    source: str
    lag_items: float
    arrives_per_s: float
    catch_up_s: float

    @property
    def more_per_s(self) -> float:
        """By how much more than what arrives the source must be read."""
        return self.lag_items / self.catch_up_s

    def reason(self) -> Reason:
        """In words."""
        return Reason(
            rule=RULE,
            task=self.source,
            inputs={
                "lag_items": self.lag_items,
                "arrives_per_s": self.arrives_per_s,
                "catch_up_s": self.catch_up_s,
            },
            why=f"{self.source} is {self.lag_items:,.0f} items behind: to drain them in {self.catch_up_s:g} s"
            f" it must read {self.more_per_s:.6g} items/s more than the {self.arrives_per_s:.6g} that arrive",
        )


def backlogs(snapshot: Snapshot) -> list[Backlog]:
    """Those that are to be drained: of sources that say in which time, and know their lag."""
    found = []
    for name, task in snapshot.tasks.items():
        lag, arrives_per_s, catch_up_s = map(finite, (task.lag_items, task.rate_total, task.catch_up_s))
        if task.kind != "source" or not lag or arrives_per_s is None or not catch_up_s:
            continue
        backlog = Backlog(name, lag, arrives_per_s, catch_up_s)
        if lag > arrives_per_s * _ON_ITS_WAY_S and math.isfinite(backlog.more_per_s):
            found.append(backlog)
    return found


def with_drained(snapshot: Snapshot, drained: Collection[Backlog]) -> Snapshot:
    """The snapshot as if what drains the backlogs arrived as well."""
    sources = {
        one.source: msgspec.structs.replace(
            snapshot.tasks[one.source], rate_total=one.arrives_per_s + one.more_per_s
        )
        for one in drained
    }
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, **sources}) if sources else snapshot


def behind(snapshot: Snapshot, drained: Collection[Backlog]) -> list[str]:
    """The tasks that what is drained comes through, in their order."""
    reached = {one.source for one in drained}
    found = []
    for name in snapshot.topological_order() if drained else ():
        if any(stream.sender in reached for stream in snapshot.streams_into(name)):
            reached.add(name)
            found.append(name)
    return found


def held_replicas(
    snapshot: Snapshot, drained: Collection[Backlog], wanted: Mapping[str, int]
) -> tuple[dict[str, int], list[Reason]]:
    """What is wanted, without taking a replica away behind a backlog; the reasons say where."""
    kept, reasons = dict(wanted), []
    for name in behind(snapshot, drained):
        now = snapshot.tasks[name].parallelism
        if wanted.get(name, now) < now:
            kept[name] = now
            why = f"{wanted[name]} would be enough for what is left; {name} keeps {now} until it is drained"
            reasons.append(Reason(rule=RULE, task=name, before=wanted[name], after=now, why=why))
    return kept, reasons


def draining_replicas(
    snapshot: Snapshot, drained: Collection[Backlog], utilization: float
) -> dict[str, tuple[int, float]]:
    """By elastic task behind a backlog: the replicas that drain it, no busier than that, and their target.

    The tasks of a chain share the process of the first, so that one does the work of all.
    """
    needs = traverse(with_drained(snapshot, drained)) if drained else {}
    found = {}
    for name in behind(snapshot, drained):
        if not snapshot.tasks[name].elastic:
            continue
        busy = _busy(needs, next((chain for chain in snapshot.chains if name in chain), [name]), name)
        target_per_s = needs[name].target_per_s
        if busy is not None and target_per_s is not None:
            wanted = math.ceil(busy / utilization * (1 - 1e-9))
            found[name] = (snapshot.tasks[name].within_limits(max(1, wanted)), target_per_s)
    return found


def _busy(needs: Mapping[str, Need], chain: list[str], name: str) -> float | None:
    """How many replicas would be busy all the time; None where that is unknown, or said by another task."""
    if chain[0] != name:
        return None
    known = [needs[one].optimum for one in chain if one in needs]
    busy = [one for one in known if one is not None]
    return finite(sum(busy)) if busy and len(busy) == len(known) else None
