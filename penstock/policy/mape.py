"""Adaptive Storm's MAPE loop: k replicas more or less by one number, delta (2021, section III and algorithm
1).

    delta = w_U * U + w_Q * Q + w_E * E
    delta >= upper: overloaded        delta <= lower: underloaded        otherwise: stable
    the same state in two windows in a row: overloaded adds k replicas of the pool unless E >= limit,
                                            underloaded takes k away

Errata. The printed algorithm 1 exchanges the two bounds (overloaded if delta exceeds the *lower* one) and
adds replicas if E *exceeds* its limit. The text says the opposite of both, and so does the public code: a
large E means that the machines are overloaded, and more replicas would slow them further.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.policy.decision import Decision, Reason, Refusal
from penstock.policy.keep import keep, scale
from penstock.policy.mape_metrics import MapeMetrics, Weights, measure, missing_fields
from penstock.policy.window import Window, gather
from penstock.stats.snapshot import Snapshot, TaskStats

Share = Annotated[float, Meta(ge=0, le=1)]


class MapeParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Table I of the paper; its values are the defaults, but for the window of 25 s."""

    weights: Annotated[
        tuple[Share, Share, Share],
        Meta(description="Weights of U, Q and E in delta, in this order.", extra={"unit": "share"}),
    ] = (0.45, 0.45, 0.1)
    upper: Annotated[
        Share, Meta(description="A delta from here on means overloaded.", extra={"unit": "share"})
    ] = 0.7
    lower: Annotated[
        Share, Meta(description="A delta up to here means underloaded.", extra={"unit": "share"})
    ] = 0.3
    execution_limit: Annotated[
        Share,
        Meta(
            description="An E from here on forbids more replicas: the machines are full.",
            extra={"unit": "share"},
        ),
    ] = 0.7
    step: Annotated[
        int, Meta(ge=1, description="k: replicas added or taken away at once.", extra={"unit": "replicas"})
    ] = 1
    windows: Annotated[
        int,
        Meta(
            ge=1, description="Windows in a row with the same state before acting.", extra={"unit": "windows"}
        ),
    ] = 2
    pool: Annotated[
        int,
        Meta(ge=1, description="p: replicas that a task may have at most.", extra={"unit": "replicas"}),
    ] = 50
    window_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Length of a window (25 in the paper); 0: every snapshot is one.",
            extra={"unit": "s"},
        ),
    ] = 0.0


class Load(Enum):
    """The state of a task."""

    OVERLOADED = "overloaded"
    STABLE = "stable"
    UNDERLOADED = "underloaded"


@dataclass(frozen=True, slots=True)
class Streak:
    """A state and for how many windows in a row it has been seen."""

    load: Load
    windows: int


@dataclass(frozen=True, slots=True)
class MapeMemory:
    """The window being gathered and the streak of each task."""

    window: Window = field(default_factory=Window)
    streaks: Mapping[str, Streak] = field(default_factory=dict)


class Mape:
    """The policy `mape`."""

    name = "mape"

    def __init__(self, parameters: MapeParameters) -> None:
        self.parameters = parameters
        self._weights = Weights(*parameters.weights)

    def initial_memory(self) -> MapeMemory:
        """No window, no states."""
        return MapeMemory()

    def decide(self, snapshot: Snapshot, memory: MapeMemory) -> tuple[Decision, MapeMemory]:
        """Monitor, analyse and plan; executing is the engine's part."""
        window, gathered = gather(memory.window, snapshot, self.parameters.window_s)
        if gathered is None:
            why = f"the window of {self.parameters.window_s:g} s is not over"
            return keep(snapshot, self.name, [Reason(rule="window", why=why)]), MapeMemory(
                window, memory.streaks
            )
        measured = {
            name: measure(task, gathered.interval_s)
            for name, task in gathered.elastic_tasks(sources=False).items()
        }
        unknown = [name for name, metrics in measured.items() if metrics is None]
        if unknown:
            # A window that is not whole is not equal to any other: the streaks begin anew.
            reasons = [_unknown(name, gathered.tasks[name]) for name in unknown]
            return keep(snapshot, self.name, reasons), MapeMemory(window)
        parallelism: dict[str, int] = {}
        reasons, refused, streaks = [], [], {}
        for name, metrics in measured.items():
            if metrics is None:
                continue
            streaks[name] = self._streak(metrics, memory.streaks.get(name))
            task = gathered.tasks[name]
            if self._is_full(metrics, streaks[name]):
                refused.append(self._refusal(name, task, metrics))
                parallelism[name] = task.parallelism
            else:
                parallelism[name] = self._planned(task, streaks[name])
            reasons.append(self._reason(name, task, metrics, streaks[name], parallelism[name]))
        return scale(snapshot, self.name, parallelism, reasons, refused=refused), MapeMemory(window, streaks)

    def _streak(self, metrics: MapeMetrics, before: Streak | None) -> Streak:
        delta = metrics.delta(self._weights)
        if delta >= self.parameters.upper:
            load = Load.OVERLOADED
        elif delta <= self.parameters.lower:
            load = Load.UNDERLOADED
        else:
            load = Load.STABLE
        return Streak(load, before.windows + 1 if before is not None and before.load is load else 1)

    def _is_full(self, metrics: MapeMetrics, streak: Streak) -> bool:
        """The guard on E, with the meaning of the text and not of the printed algorithm."""
        due = streak.load is Load.OVERLOADED and streak.windows >= self.parameters.windows
        return due and metrics.execution >= self.parameters.execution_limit

    def _planned(self, task: TaskStats, streak: Streak) -> int:
        now, step = task.parallelism, self.parameters.step
        if streak.load is Load.STABLE or streak.windows < self.parameters.windows:
            return now
        if streak.load is Load.OVERLOADED:
            return max(now, min(task.within_limits(now + step), self.parameters.pool))
        return min(now, task.within_limits(now - step))

    def _reason(self, name: str, task: TaskStats, metrics: MapeMetrics, streak: Streak, after: int) -> Reason:
        delta = metrics.delta(self._weights)
        seen = f"{streak.windows} of {self.parameters.windows} windows in a row"
        return Reason(
            rule="mape",
            task=name,
            before=task.parallelism,
            after=after,
            inputs={"U": metrics.utilization, "Q": metrics.queue, "E": metrics.execution, "delta": delta},
            why=f"{streak.load.value} with delta {delta:.3f}, for {seen}",
        )

    def _refusal(self, name: str, task: TaskStats, metrics: MapeMetrics) -> Refusal:
        return Refusal(
            guard="mape.execution_limit",
            task=name,
            before=task.parallelism,
            after=task.within_limits(task.parallelism + self.parameters.step),
            why=f"E is {metrics.execution:.3f}, at or above {self.parameters.execution_limit:g}: the machines"
            " are overloaded and more replicas would slow them further",
        )


def _unknown(name: str, task: TaskStats) -> Reason:
    fields = ", ".join(missing_fields(task))
    return Reason(
        rule="missing_data", task=name, why=f"{name!r} lacks {fields}; nothing changes until it is measured"
    )
