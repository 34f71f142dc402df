"""A controlled flow on the screen: constraints, tasks, streams, chains, and the last decision."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.control.loop import Cycle
from penstock.policy.decision import Decision
from penstock.policy.measured import sequence_latency_ms
from penstock.stats.snapshot import Snapshot


def control_view(cycle: Cycle) -> RenderableType:
    """Everything about the latest turn of the controller."""
    snapshot, decision = cycle.snapshot, cycle.decision
    return Group(
        _constraints(snapshot),
        _tasks(snapshot, decision),
        _streams(snapshot, decision),
        _last_words(cycle),
    )


def _constraints(snapshot: Snapshot) -> Table:
    table = _table("constraints", ("constraint", "measured ms", "bound ms", "used"))
    for constraint in snapshot.constraints:
        latency_ms = sequence_latency_ms(snapshot, constraint)
        used = None if latency_ms is None else latency_ms / constraint.latency_ms
        share = Text(
            "" if used is None else f"{used:.0%}", style="red" if used is not None and used > 1 else "green"
        )
        table.add_row(str(constraint.name), _shown(latency_ms), _shown(constraint.latency_ms), share)
    return table


def _tasks(snapshot: Snapshot, decision: Decision) -> Table:
    table = _table(
        "tasks", ("task", "items/s", "service ms", "queue ms", "utilisation", "waiting", "replicas", "target")
    )
    for name, task in snapshot.tasks.items():
        processed = task.processed_total
        table.add_row(
            name,
            _shown(None if processed is None else processed / snapshot.interval_s, digits=0),
            _shown(task.service_ms),
            _shown(task.queue_wait_ms),
            "" if task.utilization is None else f"{task.utilization:.0%}",
            _shown(task.backlog_total, digits=0),
            str(task.parallelism),
            str(decision.parallelism.get(name, task.parallelism)),
        )
    return table


def _streams(snapshot: Snapshot, decision: Decision) -> Table:
    table = _table("streams", ("stream", "latency ms", "batching ms", "lifetime ms", "next"))
    for stream in snapshot.streams:
        table.add_row(
            stream.name,
            _shown(stream.latency_ms),
            _shown(stream.output_batch_ms),
            _shown(stream.batch_lifetime_ms),
            _shown(decision.batch_lifetime_ms.get(stream.name, stream.batch_lifetime_ms)),
        )
    return table


def _last_words(cycle: Cycle) -> Text:
    decision = cycle.decision
    chains = [" + ".join(chain) for chain in decision.chains if len(chain) > 1]
    lines = [f"decision {cycle.number} of {decision.policy}{'' if decision.feasible else ', infeasible'}"]
    lines += [f"  chained: {chain}" for chain in chains]
    lines += [f"  {reason.rule}: {reason.why}" for reason in decision.reasons]
    lines += [f"  held back by {refusal.guard}: {refusal.why}" for refusal in decision.refused]
    return Text("\n".join(lines))


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    return table


def _shown(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
