"""A flow that runs, as its driver tells it to another terminal."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.cli.commit_words import commit_words, group_words, state_size
from penstock.cli.control_view import control_view
from penstock.control.status import manner
from penstock.durations import format_ms
from penstock.operate.protocol import FlowNow, Greeting, TaskNow


def live_view(greeting: Greeting, now: FlowNow) -> RenderableType:
    """What its policy sees if it has one and that has decided something; else tasks, streams and bounds."""
    control = now.control
    shown: list[RenderableType] = [Text("\n".join(live_headline(greeting, now)))]
    if control is not None and control.snapshot is not None and control.decisions:
        shown.append(control_view(control.snapshot, control.decisions))
    else:
        shown += [_tasks(now), *_groups(now), _streams(now)]
        if now.constraints:
            shown.append(_constraints(now))
    return Group(*shown)


def live_headline(greeting: Greeting, now: FlowNow) -> Iterator[str]:
    """Who it is and how it is."""
    since = datetime.fromtimestamp(greeting.started_at_s).strftime("%d %b %H:%M:%S")
    who = f"run {greeting.run[:8]}, pid {greeting.pid}, since {since}"
    yield f"{greeting.flow}: {now.state}, {now.message}; {who}"
    if now.control is None:
        yield "no policy: nothing is adapted, constraints are not measured"
    else:
        every = format_ms(now.control.interval_s * 1000)
        yield f"policy {now.control.policy}{manner(now.control)}, every {every}"
        if now.control.problem is not None:
            yield now.control.problem
    if paused := [task.name for task in now.tasks if task.paused]:
        yield f"paused: {', '.join(paused)}"
    yield from commit_words(now.commits)
    if now.restarts:
        yield f"started again {now.restarts} times"
    yield from (f"{task.name}: {faults}" for task in now.tasks if (faults := _faults(task)))


def _faults(task: TaskNow) -> str:
    counts = {"skipped": task.skipped, "dead letters": task.dead_lettered, "restarts": task.restarts}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def _tasks(now: FlowNow) -> Table:
    table = Table("task")
    behind = ("behind",) if any(task.lag_items is not None for task in now.tasks) else ()
    kept = ("state",) if any(task.state_bytes is not None for task in now.tasks) else ()
    for heading in ("items/s", "items", *behind, "replicas", "pool", "declared", *kept, "mean ms", "p99 ms"):
        table.add_column(heading, justify="right")
    for task in now.tasks:
        latency = now.latency.get(task.name)
        table.add_row(
            task.name,
            "" if task.per_s is None else f"{task.per_s:,.0f}",
            f"{task.items_in:,}",
            *("" if task.lag_items is None else f"{task.lag_items:,}" for _ in behind),
            str(task.replicas),
            str(task.pool),
            str(task.lowest) if task.lowest == task.highest else f"{task.lowest} to {task.highest}",
            *(state_size(task.state_bytes) for _ in kept),
            *(
                "" if value is None else f"{value:.2f}"
                for value in ((None, None) if latency is None else (latency.mean_ms, latency.p99_ms))
            ),
        )
    return table


def _groups(now: FlowNow) -> Iterator[Text]:
    for task, heavy in now.heaviest_groups.items():
        yield from map(Text, group_words(task, heavy))


def _streams(now: FlowNow) -> Table:
    table = Table("stream", "lifetime of batches")
    for stream, lifetime_ms in now.lifetimes_ms.items():
        table.add_row(stream, format_ms(lifetime_ms) if lifetime_ms else "at once")
    return table


def _constraints(now: FlowNow) -> Table:
    table = Table("constraint", "bound", "over")
    for one in now.constraints:
        table.add_row(one.name, format_ms(one.bound_ms), " ".join(one.sequence))
    return table
