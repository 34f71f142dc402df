"""What `penstock run` shows meanwhile: a table that is drawn anew, or lines where there is no screen."""

from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

import penstock
from penstock.cli.changes import decision_line
from penstock.cli.commit_words import commit_words, state_size
from penstock.cli.control_view import control_view
from penstock.cli.status import headline
from penstock.control.control import Control
from penstock.observe.reported import Metrics
from penstock.operate.commands import commits_now


def run_view(job: "penstock.Job") -> RenderableType:
    """Totals; the policy's view of the flow instead, once it has decided something."""
    totals, control = job.metrics(), job.control
    cycles = [] if control is None else control.cycles()
    if control is None or not cycles:
        return metrics_table(totals, job.status.state)
    status = control.status()
    lines = [*headline(status, status.at_s), *committed(totals), *faults(totals)]
    return Group(Text("\n".join(lines)), control_view(cycles[-1].snapshot, job.decisions()))


def committed(metrics: Metrics) -> list[str]:
    """Commits by epoch marks, once there are some."""
    return commit_words(commits_now(metrics.commits)) if metrics.commits and metrics.commits.count else []


def faults(metrics: Metrics) -> list[str]:
    """What should not have happened: to the flow, then by task."""
    down = f"{metrics.down_s:.1f} s down, {metrics.replayed:,} items replayed"
    outages = [f"started again {metrics.restarts} times, {down}"]
    counted = {
        name: {"skipped": task.skipped, "dead letters": task.dead_lettered, "restarts": task.restarts}
        for name, task in metrics.tasks.items()
    }
    return [
        *(outages if metrics.restarts else []),
        *(
            f"{name}: {', '.join(f'{count:,} {what}' for what, count in counts.items() if count)}"
            for name, counts in counted.items()
            if any(counts.values())
        ),
    ]


class DecisionLines:
    """For logs and pipes: one line for each decision, instead of a table that is drawn anew."""

    def __init__(self, control: Control | None, console: Console) -> None:
        self._control = control
        self._console = console
        self._next = 0

    def print(self) -> None:
        """Lines for the decisions since the last call."""
        for cycle in [] if self._control is None else self._control.cycles():
            if cycle.number >= self._next:
                self._next = cycle.number + 1
                at = datetime.fromtimestamp(cycle.at_s).strftime("%H:%M:%S")
                self._console.print(
                    f"{at} {decision_line(cycle)}", markup=False, highlight=False, soft_wrap=True
                )


def metrics_table(metrics: Metrics, state: str) -> Table:
    """Tasks with their totals, and the latency at the sinks."""
    said = [*committed(metrics), *(faults(metrics)[:1] if metrics.restarts else [])]
    title = ", ".join([state, *said])
    table = Table(title=title, title_justify="left")
    behind = ("behind",) if any(task.lag_items is not None for task in metrics.tasks.values()) else ()
    sizes = {} if metrics.commits is None else metrics.commits.state_bytes
    kept = ("state",) if sizes else ()
    for heading in (
        "task",
        *behind,
        "in",
        "out",
        "skipped",
        "dead letters",
        "restarts",
        "active",
        *kept,
        "mean ms",
        "p99 ms",
    ):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for name, task in metrics.tasks.items():
        counts = (task.items_in, task.items_out, task.skipped, task.dead_lettered, task.restarts)
        sketch = metrics.latency.get(name)
        known = sketch is not None and sketch.count > 0
        latencies = (
            [f"{sketch.mean:.2f}", f"{sketch.quantile(0.99):.2f}"]
            if sketch is not None and known
            else ["", ""]
        )
        lag = ["" if task.lag_items is None else f"{task.lag_items:,}" for _ in behind]
        numbers = [f"{count:,}" for count in counts]
        size = [state_size(sizes.get(name)) for _ in kept]
        table.add_row(name, *lag, *numbers, f"{task.active}/{task.pool}", *size, *latencies)
    return table
