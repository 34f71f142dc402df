"""A task whose last scale-up did nothing is not scaled up again under the same load.

More replicas either process more (if the task was saturated) or are less busy (if it was not):

    gain in rate = (rate1 / rate0 - 1) / (p1 / p0 - 1)          gain in load = (1 - u1 / u0) / (1 - p0 / p1)

1 is what linear scaling would bring. If the larger of both is below `min_gain`, something else is the
limit: skew, a shared lock, a full machine. The Flink autoscaler has the same memory for the rate, with
0.1; Dhalion calls it a blacklist. It fades after `memory_s`, or when the load changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen
from penstock.policy.guards.revise import allow, changes
from penstock.policy.load import same_load, source_rates
from penstock.policy.measured import finite, utilization
from penstock.stats.snapshot import Snapshot

# What a smaller step brings cannot be told from the noise of two intervals.
_SMALLEST_STEP = 1.2


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """A task's last scale-up and what was measured before it."""

    at_s: float
    before: int
    after: int
    processed_per_s: float | None
    utilization: float | None
    rates_per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class IneffectiveMemory:
    """The last scale-up of each task."""

    scale_ups: Mapping[str, ScaleUp] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ineffective:
    """The guard `ineffective`."""

    min_gain: float
    memory_s: float
    load_tolerance: float
    name: ClassVar[str] = "ineffective"

    def initial_memory(self) -> IneffectiveMemory:
        """No scale-ups yet."""
        return IneffectiveMemory()

    def review(
        self, seen: Seen, proposed: Decision, memory: IneffectiveMemory
    ) -> tuple[Decision, IneffectiveMemory]:
        """Refuse to repeat what did not help."""
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            last = memory.scale_ups.get(task)
            if after < before or last is None or not self._applies(seen, task, last):
                continue
            gained = gain(seen.snapshot, task, last)
            if gained is not None and gained < self.min_gain:
                why = (
                    f"going from {last.before} to {last.after} replicas brought {max(0.0, gained):.0%} of"
                    f" what linear scaling would, less than {self.min_gain:.0%}: something else is the limit"
                )
                proposed = allow(proposed, self.name, task, before=before, allowed=before, why=why)
        return proposed, memory

    def settle(self, seen: Seen, issued: Decision, memory: IneffectiveMemory) -> IneffectiveMemory:
        """Remember scale-ups; a scale-down ends the memory of its task."""
        scale_ups = dict(memory.scale_ups)
        for task, (before, after) in changes(seen.snapshot, issued).items():
            if after > before:
                scale_ups[task] = _scale_up(seen, task, before, after)
            else:
                scale_ups.pop(task, None)
        return IneffectiveMemory(scale_ups)

    def _applies(self, seen: Seen, task: str, last: ScaleUp) -> bool:
        fresh = seen.now_s - last.at_s <= self.memory_s
        in_effect = seen.snapshot.tasks[task].parallelism == last.after
        return (
            fresh
            and in_effect
            and same_load(last.rates_per_s, source_rates(seen.snapshot), self.load_tolerance)
        )


def gain(snapshot: Snapshot, task: str, last: ScaleUp) -> float | None:
    """The share of linear scaling that the scale-up brought; None if it was too small or not measured."""
    if last.after < _SMALLEST_STEP * last.before:
        return None
    rate, load = _measured(snapshot, task)
    gains = []
    if rate is not None and last.processed_per_s:
        gains.append((rate / last.processed_per_s - 1) / (last.after / last.before - 1))
    if load is not None and last.utilization:
        gains.append((1 - load / last.utilization) / (1 - last.before / last.after))
    return max(gains, default=None)


def _measured(snapshot: Snapshot, task: str) -> tuple[float | None, float | None]:
    processed = finite(snapshot.tasks[task].processed_total)
    rate = None if processed is None else processed / snapshot.interval_s
    return rate, utilization(snapshot.tasks[task])


def _scale_up(seen: Seen, task: str, before: int, after: int) -> ScaleUp:
    rate, load = _measured(seen.snapshot, task)
    return ScaleUp(seen.now_s, before, after, rate, load, source_rates(seen.snapshot))
