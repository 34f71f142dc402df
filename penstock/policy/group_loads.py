"""What each group of keys of a task has to do, and who owns it, as far as a snapshot tells. Pure.

The heaviest groups are known one by one. The others of a span share what is left of it evenly:

    load = (items of the span - items of its heavy groups) / number of its other groups * service time

A load is in seconds of work where the service time is known, else in items.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.policy.decision import KeySpan
from penstock.policy.measured import finite
from penstock.stats.snapshot import TaskStats


@dataclass(frozen=True, slots=True)
class GroupLoads:
    """By group: the replica that owns it, and what it had to do in the interval."""

    owners: list[int]
    loads: list[float]

    @property
    def heaviest(self) -> tuple[int, float]:
        """The group with the most to do, and its share of all."""
        group = max(range(len(self.loads)), key=self.loads.__getitem__)
        return group, self.loads[group] / sum(self.loads)


def group_loads(task: TaskStats) -> GroupLoads | None:
    """None if keys cannot be divided by a table, or nothing was sent to the task."""
    spans = task.key_table or []
    service_ms = finite(task.service_ms)
    heavy: dict[int, tuple[float, float]] = {}
    for one in task.key_groups or []:
        items = one.processed or 0.0
        known = service_ms is not None and one.useful_s is not None
        heavy[one.group] = (items, one.useful_s or 0.0) if known else (items, items)
    per_item = 1.0 if service_ms is None else service_ms / 1000
    owners: list[int] = []
    loads: list[float] = []
    for span in spans:
        groups = range(span.first, span.last + 1)
        known_items = sum(heavy[group][0] for group in groups if group in heavy)
        others = sum(group not in heavy for group in groups)
        left = max(0.0, (span.processed or 0.0) - known_items) * per_item / max(1, others)
        owners += [span.replica] * len(groups)
        loads += [heavy[group][1] if group in heavy else left for group in groups]
    return GroupLoads(owners, loads) if sum(loads) > 0 else None


def even_owners(groups: int, replicas: int) -> list[int]:
    """Who owns each group where no table says so: as many each."""
    return [group * replicas // groups for group in range(groups)]


def key_spans(owners: Sequence[int]) -> list[KeySpan]:
    """Groups in a row that one replica owns: first, last, replica."""
    spans: list[KeySpan] = []
    for group, replica in enumerate(owners):
        if spans and spans[-1][2] == replica:
            spans[-1] = (spans[-1][0], group, replica)
        else:
            spans.append((group, group, replica))
    return spans
