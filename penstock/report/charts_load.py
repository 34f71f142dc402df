"""What a run had to do and what it took: rates, replicas, cores."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from penstock.report.colours import BLACK, GREY, colour
from penstock.report.grid import grid, steps, union
from penstock.report.history import History
from penstock.report.metrics import needed


def rate(histories: Sequence[History]) -> Figure | None:
    """What the sources sent and what the sinks received."""

    def row(axes: Axes, history: History, _: str) -> None:
        for number, (kind, label) in enumerate((("source", "sent"), ("sink", "received"))):
            for which, name in enumerate(_named(history, kind)):
                values = [_per_s(s.tasks[name].processed_total, s.interval_s) for s in history.snapshots]
                if kind == "source":
                    known = [s.tasks[name].rate_total for s in history.snapshots]
                    values = [k if k is not None else v for k, v in zip(known, values, strict=True)]
                style = ("-", "--", ":", "-.")[which % 4]
                look = {"color": colour(number), "linestyle": style, "linewidth": 3.0 - 1.6 * number}
                steps(axes, history, values, label=f"{label}: {name}", **look)
        axes.set_ylabel("items/s")

    return grid(histories, ["rate"], row, from_zero=True, same_scale=True)


def replicas(histories: Sequence[History]) -> Figure | None:
    """Active replicas of each task, those its load asked for, and its pool."""
    names = union(name for history in histories for name in history.scaled_tasks())

    def row(axes: Axes, history: History, name: str) -> None:
        tasks = [snapshot.tasks[name] for snapshot in history.snapshots if name in snapshot.tasks]
        if len(tasks) < len(history.snapshots):
            return
        pools = [task.pool for task in tasks]
        if any(pool is not None for pool in pools):
            steps(axes, history, pools, label="pool", color=GREY, linestyle="--")
        steps(axes, history, [t.parallelism for t in tasks], label="active", color=colour(0), linewidth=2)
        steps(
            axes,
            history,
            [needed(t) for t in tasks],
            label="needed",
            color=colour(1),
            linestyle=":",
            linewidth=2,
        )
        axes.set_ylabel(f"{name}\nreplicas")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))

    return grid(histories, names, row, from_zero=True, same_scale=True)


def cpu(histories: Sequence[History]) -> Figure | None:
    """Cores that were busy: all of the flow, and the processes of each task."""

    def row(axes: Axes, history: History, _: str) -> None:
        whole = [snapshot.cores_used for snapshot in history.snapshots]
        leased = [snapshot.cores_leased for snapshot in history.snapshots]
        if any(value is not None for value in whole):
            steps(axes, history, whole, label="everything", color=BLACK, linewidth=2)
            steps(axes, history, leased, label="leased", color=GREY, linestyle=":")
        for number, name in enumerate(history.snapshots[-1].tasks):
            tasks = [snapshot.tasks[name] for snapshot in history.snapshots]
            values = [None if t.cpu is None else t.cpu * t.parallelism for t in tasks]
            style = ("-", "--", ":")[number // 8 % 3]
            steps(axes, history, values, label=name, color=colour(number), linestyle=style)
        axes.set_ylabel("busy cores")

    return grid(histories, ["cpu"], row, from_zero=True, same_scale=True)


def _named(history: History, kind: str) -> list[str]:
    return [name for name, task in history.snapshots[-1].tasks.items() if task.kind == kind]


def _per_s(total: float | None, seconds: float) -> float | None:
    return None if total is None else total / seconds
