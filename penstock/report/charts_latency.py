"""Latency against its bound, and where it goes."""

from collections.abc import Sequence
from statistics import median
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.report.colours import BLACK, colour
from penstock.report.grid import WIDE, grid, label_bound, shade, steps, union
from penstock.report.history import History
from penstock.report.latency_parts import KINDS, Part, latency_parts
from penstock.report.metrics import held

# Bars are cut off at so many times the bound if most are lower: a start must not hide the rest of a run.
CUT = 3.0
HATCHES: Final = {"batching": "", "transport": "//", "queue": "..", "service": ""}


def latency(histories: Sequence[History]) -> Figure | None:
    """Mean and 95th percentile against the bound; intervals that broke it are shaded."""
    names = union(spec.name for history in histories for spec in history.constraints)

    def row(axes: Axes, history: History, name: str) -> None:
        spec = next((spec for spec in history.constraints if spec.name == name), None)
        if spec is None:
            return
        means, p95s = history.latencies_ms(name), history.p95s_ms(name)
        bounds = [None if one is None else one.latency_ms for one in history.specs(name)]
        shade(axes, history, [verdict is False for verdict in held(history, name)])
        steps(axes, history, means, label="mean", color=colour(0), linewidth=1.8)
        if any(value is not None for value in p95s):
            steps(axes, history, p95s, label="95th percentile", color=colour(1), linestyle="--")
        steps(axes, history, bounds, label="bound", color=BLACK, linestyle=":")
        label_bound(axes, next(bound for bound in bounds if bound is not None))
        if any(value is not None and value > WIDE * spec.latency_ms for value in means):
            axes.set_yscale("log")
        axes.set_ylabel(f"{name}: {spec.statistic} ≤ {spec.latency_ms:g} ms\nlatency [ms]")

    return grid(histories, names, row, from_zero=True, same_scale=True)


def parts_over_time(histories: Sequence[History]) -> Figure | None:
    """The mean latency of each constraint, stacked by what it is spent on."""
    names = union(spec.name for history in histories for spec in history.constraints)

    def row(axes: Axes, history: History, name: str) -> None:
        parts = _parts(history, name)
        layers = [
            [sum(p.ms for p in found if p.kind == kind) if found else 0.0 for found in parts]
            for kind in KINDS
        ]
        edges = [*history.begins_s, history.ends_s[-1]]
        floor = [0.0] * len(parts)
        for number, (kind, layer) in enumerate(zip(KINDS, layers, strict=True)):
            top = [low + value for low, value in zip(floor, layer, strict=True)]
            axes.stairs(
                top,
                edges,
                baseline=floor,
                fill=True,
                label=kind,
                facecolor=colour(number),
                hatch=HATCHES[kind],
                edgecolor="white",
                linewidth=0,
            )
            floor = top
        bounds_ms = [spec.latency_ms for spec in history.specs(name) if spec is not None]
        if not bounds_ms:
            return
        axes.axhline(bounds_ms[-1], color=BLACK, linestyle=":", linewidth=1.6, label="bound")
        label_bound(axes, bounds_ms[-1])
        if median(floor) < CUT * bounds_ms[-1] < max(floor):
            axes.set_ylim(0, CUT * bounds_ms[-1])
        axes.set_ylabel(f"{name}\nmean latency [ms]")

    return grid(histories, names, row, from_zero=True)


def parts_by_task(histories: Sequence[History]) -> Figure | None:
    """The same over the whole run, by the task to which or in which the time is spent."""
    names = union(spec.name for history in histories for spec in history.constraints)

    def row(axes: Axes, history: History, name: str) -> None:
        known = [found for found in _parts(history, name) if found]
        tasks = union(part.task for found in known for part in found)
        left = [0.0] * len(tasks)
        for number, kind in enumerate(KINDS):
            widths = [
                median([sum(p.ms for p in found if (p.task, p.kind) == (task, kind)) for found in known])
                for task in tasks
            ]
            axes.barh(
                tasks,
                widths,
                left=left,
                label=kind,
                color=colour(number),
                hatch=HATCHES[kind],
                edgecolor="white",
                linewidth=0,
            )
            left = [edge + width for edge, width in zip(left, widths, strict=True)]
        axes.invert_yaxis()
        axes.set_ylabel(name)
        axes.set_xlabel("latency on the way to the task and in it [ms]")

    return grid(histories, names, row, time_axis=False)


def _parts(history: History, name: str) -> list[list[Part] | None]:
    return [
        None if spec is None else latency_parts(snapshot, spec)
        for snapshot, spec in zip(history.snapshots, history.specs(name), strict=True)
    ]
