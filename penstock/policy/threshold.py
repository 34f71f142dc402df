"""Threshold: keep the utilisation of every task in a band, each task for itself.

    replicas = ceil( replicas now * utilisation / target ),   if utilisation is above `high` or below `low`

This is the rule of most horizontal autoscalers, here on a task's utilisation or on its share of a CPU. It
sees no queues, no graph and no latency, which is why it serves as a baseline. A target of at least twice
`low` makes it stable: the ceiling of two or more replicas never leaves the band at the bottom.
"""

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.policy.decision import Decision, Reason
from penstock.policy.keep import scale
from penstock.policy.measured import finite
from penstock.stats.snapshot import Snapshot, TaskStats

Level = Annotated[float, Meta(gt=0, le=1)]

# A utilisation that is exactly the target times whole replicas must not need one more because of rounding.
_ROUNDING = 1e-9


class ThresholdParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The band and where in it to go."""

    metric: Annotated[
        Literal["utilization", "cpu"], Meta(description="The field of a task that is kept in the band.")
    ] = "utilization"
    low: Annotated[
        Level, Meta(description="Below this, replicas are taken away.", extra={"unit": "share"})
    ] = 0.3
    high: Annotated[Level, Meta(description="Above this, replicas are added.", extra={"unit": "share"})] = 0.8
    target: Annotated[
        Level, Meta(description="What a change aims at; at least twice `low`.", extra={"unit": "share"})
    ] = 0.6

    def __post_init__(self) -> None:
        if not 2 * self.low <= self.target <= self.high:
            raise ValueError(
                f"threshold.target: must be from twice low to high, {2 * self.low:g} to {self.high:g},"
                f" not {self.target:g}"
            )


class Threshold:
    """The policy `threshold`."""

    name = "threshold"

    def __init__(self, parameters: ThresholdParameters) -> None:
        self.parameters = parameters

    def initial_memory(self) -> None:
        """It remembers nothing."""
        return

    def decide(self, snapshot: Snapshot, memory: None) -> tuple[Decision, None]:
        """Each elastic task back into its band; a task that was not measured stays as it is."""
        judged = [self._judge(name, task) for name, task in snapshot.elastic_tasks(sources=False).items()]
        unknown = any(after is None for _, after, _ in judged)
        parallelism = {} if unknown else {name: after for name, after, _ in judged if after is not None}
        reasons = [reason for _, after, reason in judged if after is None or not unknown]
        return scale(snapshot, self.name, parallelism, reasons), memory

    def _judge(self, name: str, task: TaskStats) -> tuple[str, int | None, Reason]:
        metric, low, high = self.parameters.metric, self.parameters.low, self.parameters.high
        level = finite(getattr(task, metric))
        now = task.parallelism
        if level is None:
            why = f"{name!r} lacks {metric}; nothing changes until it is measured"
            return name, None, Reason(rule="missing_data", task=name, why=why)
        if low <= level <= high:
            after, why = now, f"{metric} {level:.3f} is between {low:g} and {high:g}"
        else:
            wanted = max(1, math.ceil(now * level / self.parameters.target * (1 - _ROUNDING)))
            after = task.within_limits(wanted)
            side = f"above {high:g}" if level > high else f"below {low:g}"
            why = f"{metric} {level:.3f} is {side}: {wanted} replicas would have {self.parameters.target:g}"
        reason = Reason(
            rule="threshold",
            task=name,
            before=now,
            after=after,
            inputs={metric: level},
            prediction={metric: level * now / after},
            why=why,
        )
        return name, after, reason
