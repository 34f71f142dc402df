"""One flow on Spark under one policy: who arrived when, what was decided, what it cost."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from penstock import Flow, run
from penstock.bench.telling import tell
from penstock.bench.windows import CpuSpan
from penstock.control.control_plan import ControlPlan
from penstock.control.decision_log import Entry
from penstock.control.loop import Cycle
from penstock.processes import cpu_s
from penstock.spark.job import Job
from penstock.testing import Ledger
from penstock.testing.arrivals import Entries, arrivals

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ControlledRun:
    """All that is known of a finished run; times in seconds count from the first due item."""

    plan: ControlPlan
    entries: Entries
    expected: int
    cycles: list[Cycle]
    decisions: list[Entry]
    began_ns: int
    began_at_s: float
    cpu_s: float
    batches: int
    restarts: int
    problem: str | None

    def mean_ms(self, begin_s: float, end_s: float) -> float | None:
        """Mean latency of the items due in that time, from due time to sink."""
        latency_ms = self._due_between(begin_s, end_s).latency_ms()
        return float(latency_ms.mean()) if len(latency_ms) else None

    def quantile_ms(self, begin_s: float, end_s: float, quantile: float) -> float | None:
        """A quantile of the same."""
        latency_ms = self._due_between(begin_s, end_s).latency_ms()
        return float(numpy.quantile(latency_ms, quantile)) if len(latency_ms) else None

    def means_ms(self, begin_s: float, end_s: float, window_s: float) -> list[float | None]:
        """The means of one window after the other; a window cut short by the end is left out."""
        count = int((end_s - begin_s) / window_s + 1e-6)
        return [self.mean_ms(begin_s + k * window_s, begin_s + (k + 1) * window_s) for k in range(count)]

    def replica_seconds(self, task: str, begin_s: float, end_s: float) -> float:
        """Replicas of a task times the time they were active."""
        spans = [
            (min(end_s, at_s) - max(begin_s, at_s - cycle.snapshot.interval_s), cycle)
            for cycle in self.cycles
            if begin_s < (at_s := cycle.at_s - self.began_at_s) and at_s - cycle.snapshot.interval_s < end_s
        ]
        covered_s = sum(span_s for span_s, _ in spans)
        total = sum(span_s * cycle.snapshot.tasks[task].parallelism for span_s, cycle in spans)
        return total * (end_s - begin_s) / covered_s if covered_s else 0.0

    def actions(self) -> int:
        """How often the number of replicas of a task changed."""
        return sum(
            before.snapshot.tasks[name].parallelism != after.snapshot.tasks[name].parallelism
            for before, after in itertools.pairwise(self.cycles)
            for name in after.snapshot.tasks
        )

    def harm(self) -> dict[str, int]:
        """What must never happen."""
        return {
            "lost": self.entries.lost({0: self.expected}),
            "duplicated": self.entries.duplicated(),
            "restarts": self.restarts,
        }

    def seconds_of(self, span: CpuSpan) -> tuple[float, float]:
        """When it began and ended."""
        return (span.begin_ns - self.began_ns) / NS_PER_S, (span.end_ns - self.began_ns) / NS_PER_S

    def cpu_us_per_item(self, span: CpuSpan) -> float | None:
        """The CPU of a time for each item that was due in it."""
        items = len(self.entries.due_between(span.begin_ns, span.end_ns))
        return span.cpu_s * 1e6 / items if items else None

    def _due_between(self, begin_s: float, end_s: float) -> Entries:
        begin_ns = self.began_ns + round(begin_s * NS_PER_S)
        return self.entries.due_between(begin_ns, self.began_ns + round(end_s * NS_PER_S))


def controlled_run(
    flow: Flow, ledger: Ledger, plan: ControlPlan, meanwhile: Callable[[Job], Any] | None = None
) -> ControlledRun:
    """Run a flow to its end, or until `meanwhile` is done with it."""
    tell(f"  {flow.name} under {plan.name}")
    cpu_before_s = cpu_s()
    job = run(flow, policy=plan.policy, settings=plan.settings, interval=plan.interval)
    control = job.control
    assert control is not None, "flows of benches have constraints"
    if meanwhile is not None:
        meanwhile(job)
        job.stop()
    job.await_termination()
    entries = arrivals(ledger)
    began_ns = int(entries.due_ns.min())
    tasks = job.metrics().tasks
    sources = [task.name for task in job.layout.graph.tasks if task.kind == "source"]
    last = job.last_progress
    return ControlledRun(
        plan=plan,
        entries=entries,
        expected=sum(tasks[name].items_in for name in sources),
        cycles=control.cycles(),
        decisions=control.decisions(),
        began_ns=began_ns,
        began_at_s=time.time() - time.monotonic() + began_ns / NS_PER_S,
        cpu_s=cpu_s() - cpu_before_s,
        batches=0 if last is None else int(last["batch"]),
        restarts=sum(task.restarts for task in tasks.values()),
        problem=control.problem,
    )
