"""Who owns which keys: divided anew where one replica is the bottleneck, and told with its price.

Policies take replicas to be alike. Where some keys have more items than others they are not: the busiest
replica is the limit, and more replicas help it only if they take of its keys. With

    most  = load of the busiest replica, as a share of all
    least = max(1 / replicas, share of the heaviest group)            (penstock/policy/key_division.py)

keys of a task are divided anew when its busiest replica was busier than `above`, and a division with few
moves brings `most` down by `gain`, both for `intervals` in a row. If most is near least, nothing helps but
another key, and that is told. A task that gets other replicas gets the table that fits its load, too, if an
even division would leave the busiest replica with more by `gain`.

The price of a change of a keyed task: the share of items whose keys change hands, the state that goes with
them (by their share of groups), and what they wait for: a commit, as long as the last one took.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import msgspec

from penstock.policy.decision import Decision, Evidence, Reason
from penstock.policy.group_loads import GroupLoads, even_owners, group_loads, key_spans
from penstock.policy.guards.port import Seen
from penstock.policy.guards.revise import changes
from penstock.policy.key_division import divide, least_possible, loads_of
from penstock.policy.measured import finite
from penstock.stats.snapshot import Snapshot, TaskStats

RULE: Final = "key_division"
PRICE: Final = "price"
_TOLERANCE: Final = 0.01  # a replica that stays nearly full has little left to work off what waits
_MEASURED_WITHIN: Final = 0.1
_GROUPS: Final = 4096  # as penstock/wire/keys.py has them; here only shares count


@dataclass(frozen=True, slots=True)
class DivideKeysMemory:
    """Of each task for how many intervals a better division was seen, and when keys were last divided."""

    seen: Mapping[str, int] = field(default_factory=dict)
    divided: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What comes of one task: a table if there is to be one, why, and whether it was better."""

    table: list[int] | None
    reasons: list[Reason]
    is_better: bool = False


@dataclass(frozen=True, slots=True)
class DivideKeys:
    """The guard `divide_keys`: the only one that adds to a decision."""

    above: float
    gain: float
    intervals: int
    warm_up_s: float
    name: ClassVar[str] = "divide_keys"

    def initial_memory(self) -> DivideKeysMemory:
        """Nothing seen yet."""
        return DivideKeysMemory()

    def review(
        self, seen: Seen, proposed: Decision, memory: DivideKeysMemory
    ) -> tuple[Decision, DivideKeysMemory]:
        """Add tables, and reasons with their prices."""
        if seen.now_s <= self.warm_up_s:
            return proposed, memory
        moved = changes(seen.snapshot, proposed)
        tables, reasons, better = dict(proposed.key_tables), list(proposed.reasons), dict[str, int]()
        for name, task in seen.snapshot.tasks.items():
            loads = group_loads(task)
            if name in moved and loads is not None:
                turn = self._with_other_replicas(seen.snapshot, name, loads, *moved[name])
            elif name in moved:
                turn = _Turn(None, _blindly(seen.snapshot, name, *moved[name]))
            elif loads is None:
                continue
            else:
                turn = self._as_it_is(seen, name, loads, memory)
                if turn.is_better:
                    better[name] = memory.seen.get(name, 0) + 1
            if turn.table is not None:
                tables[name] = key_spans(turn.table)
            reasons += turn.reasons
        decision = msgspec.structs.replace(proposed, key_tables=tables, reasons=reasons)
        return decision, replace(memory, seen=better)

    def settle(self, seen: Seen, issued: Decision, memory: DivideKeysMemory) -> DivideKeysMemory:
        """Remember when keys were divided."""
        now = dict.fromkeys([*issued.key_tables, *changes(seen.snapshot, issued)], seen.now_s)
        return replace(memory, divided={**memory.divided, **now})

    def _with_other_replicas(
        self, snapshot: Snapshot, name: str, loads: GroupLoads, before: int, after: int
    ) -> _Turn:
        """Evenly, unless that would leave the busiest replica with much more than it need have."""
        even = even_owners(len(loads.loads), after)
        found = divide(loads.owners, loads.loads, after, tolerance=_TOLERANCE)
        evenly = max(loads_of(even, loads.loads, after))
        fits = found.most_loaded <= (1 - self.gain) * evenly
        owners = found.owners if fits else even
        price = _price(snapshot, name, loads, owners)
        said = [_changed(name, before, after, price)]
        if fits:
            total = sum(loads.loads)
            why = (
                f"evenly divided, the busiest of {after} replicas would have {evenly / total:.0%} of the"
                f" load, with this table {found.most_loaded / total:.0%}"
            )
            said.append(Reason(rule=RULE, task=name, before=before, after=after, inputs=price, why=why))
        return _Turn(owners if fits else None, said)

    def _as_it_is(self, seen: Seen, name: str, loads: GroupLoads, memory: DivideKeysMemory) -> _Turn:
        """Divided anew if its busiest replica is the bottleneck, and need not be."""
        task = seen.snapshot.tasks[name]
        busiest = finite(task.utilization_max)
        if task.parallelism == 1 or busiest is None or busiest <= self.above:
            return _Turn(None, [])
        total, replicas = sum(loads.loads), task.parallelism
        most = max(loads_of(loads.owners, loads.loads, replicas)) / total
        found = divide(loads.owners, loads.loads, replicas, tolerance=_TOLERANCE)
        after = found.most_loaded / total
        told: Evidence = {"busiest_utilization": busiest, "busiest_share": most, "replicas": replicas}
        if after > (1 - self.gain) * most:
            return _Turn(None, _cannot_be_divided(name, task, loads, most, told))
        waited = memory.seen.get(name, 0) + 1
        rests = seen.intervals_since(memory.divided.get(name)) < self.intervals
        expected: Evidence = {
            "busiest_share": after,
            "busiest_utilization": busiest * after / most,
            "least_possible_share": least_possible(loads.loads, replicas) / total,
        }
        price = _price(seen.snapshot, name, loads, found.owners)
        why = (
            f"one of {replicas} replicas has {most:.0%} of the load and is busy {busiest:.0%} of the time;"
            f" {found.groups_moved} of {len(loads.loads)} key groups go elsewhere, which leaves it"
            f" {after:.0%}"
        )
        if waited < self.intervals or rests:
            why = f"not yet, seen for {waited} of {self.intervals} intervals: {why}"
            return _Turn(None, [Reason(rule=RULE, task=name, inputs=told, why=why)], is_better=True)
        reason = Reason(rule=RULE, task=name, inputs=told, prediction={**expected, **price}, why=why)
        return _Turn(found.owners, [reason], is_better=True)


def _cannot_be_divided(
    name: str, task: TaskStats, loads: GroupLoads, most: float, told: Evidence
) -> list[Reason]:
    """Told where a single group is what makes a replica busier than the others."""
    group, share = loads.heaviest
    if share * task.parallelism <= 1:
        return []
    of_use = math.ceil(1 / share - _MEASURED_WITHIN)
    why = (
        f"key group {group} has {share:.0%} of the load, and keys of one group stay together: with any"
        f" division the busiest replica has as much (now {most:.0%}), and more than {of_use} replicas"
        " do not help"
    )
    if task.state_bytes is not None:
        why += f"; its keys: penstock state CHECKPOINT {name} --group {group}"
    return [Reason(rule=RULE, task=name, inputs={**told, "heaviest_group_share": share}, why=why)]


def _blindly(snapshot: Snapshot, name: str, before: int, after: int) -> list[Reason]:
    """The price of other replicas where no table can be given; none if no keys change hands."""
    if all(stream.wiring != "key" for stream in snapshot.streams_into(name)):
        return []
    evenly = GroupLoads(even_owners(_GROUPS, before), [1.0] * _GROUPS)
    price = _price(snapshot, name, evenly, even_owners(_GROUPS, after))
    return [_changed(name, before, after, price, by_marks=snapshot.commits is not None)]


def _price(snapshot: Snapshot, name: str, loads: GroupLoads, owners: list[int]) -> Evidence:
    """What a change of owners costs, as far as it is known."""
    moved = [group for group, owner in enumerate(owners) if owner != loads.owners[group]]
    share = sum(loads.loads[group] for group in moved) / sum(loads.loads)
    bytes_now = snapshot.tasks[name].state_bytes
    state = None if bytes_now is None else round(bytes_now * len(moved) / len(owners))
    waits = None if snapshot.commits is None else snapshot.commits.took_ms
    return {"moved_share": share, "moved_state_bytes": state, "wait_ms": waits}


def _changed(name: str, before: int, after: int, price: Evidence, *, by_marks: bool = True) -> Reason:
    share, state, waits = price["moved_share"], price["moved_state_bytes"], price["wait_ms"]
    assert isinstance(share, float)
    with_state = f" with {state:,} bytes of state" if state else ""
    wait = f", about {waits:.0f} ms" if isinstance(waits, int | float) else ""
    if by_marks:
        way = f"their items wait for a commit{wait}, all others go on"
    else:
        way = "that takes a boundary, for which sources stop for some tenths of a second"
    why = f"keys with {share:.0%} of the items{with_state} change hands; {way}"
    return Reason(rule=PRICE, task=name, before=before, after=after, prediction=price, why=why)
