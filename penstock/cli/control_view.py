"""A controlled flow on the screen: constraints, tasks, streams, chains, and what was decided last."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from penstock.cli.changes import changed_settings, reasons
from penstock.cli.commit_words import heavy_words, state_size
from penstock.control.decision_log import Entry
from penstock.policy.decision import Decision
from penstock.policy.measured import sequence_latency_ms
from penstock.stats.snapshot import QueueStats, Snapshot

_ARROW = "→"
_BAR = 20


def control_view(snapshot: Snapshot, entries: Sequence[Entry]) -> RenderableType:
    """Everything about the latest turn of the controller; the last of `entries` was decided on `snapshot`."""
    decision = entries[-1].decision
    return Group(
        _constraints(snapshot),
        "",
        _tasks(snapshot, decision),
        "",
        _streams(snapshot, decision),
        "",
        *_words(snapshot, entries),
    )


def _constraints(snapshot: Snapshot) -> Table:
    table = _table("constraint", "mean ms", "p95", "p99", "bound ms", "used", "")
    table.columns[-1].justify = "left"
    for constraint in snapshot.constraints:
        judged_ms = constraint.mean_ms
        latency_ms = sequence_latency_ms(snapshot, constraint) if judged_ms is None else judged_ms
        used = None if latency_ms is None else latency_ms / constraint.latency_ms
        style = "red" if used is not None and used > 1 else "green"
        filled = 0 if used is None else min(_BAR, round(used * _BAR))
        table.add_row(
            str(constraint.name),
            _number(latency_ms),
            _number(constraint.p95_ms),
            _number(constraint.p99_ms),
            _number(constraint.latency_ms),
            Text("not measured" if used is None else f"{used:.0%}", style=style),
            Text("━" * filled + "·" * (_BAR - filled), style=style),
        )
    return table


def _tasks(snapshot: Snapshot, decision: Decision) -> Table:
    """Sources that know how far they are behind have a column for it, and so has state that is committed."""
    behind = ("behind",) if any(task.lag_items is not None for task in snapshot.tasks.values()) else ()
    kept = ("state",) if any(task.state_bytes is not None for task in snapshot.tasks.values()) else ()
    waits = ("queue ms", "waiting", *behind)
    table = _table("task", "items/s", "busy", "service ms", *waits, "replicas", "of pool", *kept)
    for name, task in snapshot.tasks.items():
        items = task.rate_total
        if items is None and task.processed_total is not None:
            items = task.processed_total / snapshot.interval_s
        table.add_row(
            name,
            _number(items, digits=0),
            "" if task.utilization is None else f"{task.utilization:.0%}",
            _number(task.service_ms),
            _number(task.queue_wait_ms),
            _number(task.backlog_total, digits=0),
            *(_number(task.lag_items, digits=0) for _ in behind),
            _moved(str(task.parallelism), str(decision.parallelism.get(name, task.parallelism))),
            "" if task.pool is None else str(task.pool),
            *(state_size(task.state_bytes) for _ in kept),
        )
    return table


def _streams(snapshot: Snapshot, decision: Decision) -> Table:
    table = _table(
        "stream", "latency ms", "of it batching", "batch lifetime ms", "waiting", "KiB", "oldest ms"
    )
    for stream in snapshot.streams:
        lifetime_ms = stream.batch_lifetime_ms
        queue = QueueStats() if stream.queue is None else stream.queue
        table.add_row(
            stream.name,
            _number(stream.latency_ms),
            _number(stream.output_batch_ms),
            _moved(_number(lifetime_ms), _number(decision.batch_lifetime_ms.get(stream.name, lifetime_ms))),
            _number(queue.items, digits=0),
            _number(None if queue.bytes is None else queue.bytes / 1024, digits=1),
            _number(queue.age_ms, digits=1),
        )
    return table


def _words(snapshot: Snapshot, entries: Sequence[Entry]) -> Iterator[RenderableType]:
    """Chains, the last decision that changed something, and what is decided now with its reasons."""
    chains = [" + ".join(chain) for chain in snapshot.chains if len(chain) > 1]
    if chains:
        yield Text(f"chained: {', '.join(chains)}")
    yield from map(Text, heavy_words(snapshot))
    last = entries[-1]
    earlier = next((entry for entry in reversed(entries[:-1]) if _took_effect(entry)), None)
    if earlier is not None:
        yield Text(f"last change {last.at_s - earlier.at_s:.0f} s ago{_in_effect(earlier)}")
    decision = last.decision
    changes = changed_settings(snapshot, decision)
    what = ", ".join(changes) if changes else "no change"
    doubt = "" if decision.feasible else " (infeasible)"
    yield Text(f"decision {last.number} of {decision.policy}: {what}{doubt}")
    why = [*reasons(decision)]
    if last.effect is not None and last.effect.problem is not None:
        why.append(f"not carried out: {last.effect.problem}")
    yield Padding(Group(*(Text(line) for line in why)), (0, 0, 0, 2))


def _took_effect(entry: Entry) -> bool:
    return entry.effect is not None and entry.effect.problem is None


def _in_effect(entry: Entry) -> str:
    effect = entry.effect
    if effect is None or effect.after_ms is None:
        return ""
    gap = "" if effect.gap_ms is None else f", with a gap of {effect.gap_ms:.0f} ms"
    return f", in effect after {effect.after_ms:.0f} ms{gap}"


def _moved(now: str, then: str) -> Text:
    return Text(now) if now == then else Text(f"{now} {_ARROW} {then}", style="bold")


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right", no_wrap=True)
    return table


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
