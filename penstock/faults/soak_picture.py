"""The picture of a soak: rate, latency, faults and memory over time."""

from itertools import cycle
from pathlib import Path

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock.faults.checker import BOUND_MS
from penstock.faults.soak import Soak
from penstock.faults.soak_samples import KINDS
from penstock.report.colours import BLACK, BLUE, GREY, ORANGE, VERMILION, colour
from penstock.report.grid import save
from penstock.testing.arrivals import Entries

WINDOW_S = 5.0
WIDTH_IN, PANEL_IN = 9.0, 2.4
STYLES = ("-", "--", ":", "-.")


def draw(about: Soak, entries: Entries, path: Path) -> None:
    """Three panels over one time axis; a line for each kill."""
    figure = Figure(figsize=(WIDTH_IN, 3 * PANEL_IN + 0.4), layout="constrained")
    rate, latency, memory = figure.subplots(3, 1, sharex=True)
    figure.suptitle("Random kills under load, measured on Spark")
    _items(rate, latency, about, entries)
    _memory(memory, about)
    for axes in (rate, latency):
        _faults(axes, about)
    for axes in (rate, latency, memory):
        axes.grid(visible=True, linewidth=0.3)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    memory.set_xlabel("time [s]")
    memory.set_xlim(0, about.seconds)
    save(figure, path)


def _items(rate: Axes, latency: Axes, about: Soak, entries: Entries) -> None:
    due_s = (entries.due_ns - about.began_ns) * 1e-9
    window = numpy.maximum(due_s / WINDOW_S, 0.0).astype(numpy.int64)
    latency_ms = entries.latency_ms()
    ends = numpy.arange(window.max() + 2) * WINDOW_S
    counts = numpy.bincount(window)
    rate.stairs(counts / WINDOW_S, ends, color=BLUE, label="due and arrived")
    rate.set_ylabel("items/s")
    rate.set_ylim(bottom=0)
    means = numpy.bincount(window, weights=latency_ms) / numpy.maximum(counts, 1)
    worst = [_p99(latency_ms[window == number]) for number in range(len(counts))]
    latency.stairs(means, ends, color=BLUE, label="mean", baseline=None)
    latency.stairs(worst, ends, color=ORANGE, linestyle="--", label="99th percentile", baseline=None)
    latency.axhline(
        BOUND_MS, color=BLACK, linewidth=1.0, linestyle=(0, (1, 1)), label=f"bound, {BOUND_MS:g} ms"
    )
    latency.set_yscale("log")
    latency.set_ylabel("latency [ms]")


def _p99(values: NDArray[numpy.float64]) -> float:
    return float(numpy.percentile(values, 99)) if len(values) else float("nan")


def _memory(axes: Axes, about: Soak) -> None:
    for place, (kind, style) in enumerate(zip(KINDS, cycle(STYLES), strict=False)):
        known = [(one.at_s, one.kinds[kind].memory_mb) for one in about.samples if kind in one.kinds]
        if known:
            axes.plot(*zip(*known, strict=True), color=colour(place), linestyle=style, label=kind)
    axes.set_yscale("log")
    axes.set_ylabel("memory of a process [MB]")


def _faults(axes: Axes, about: Soak) -> None:
    for victim, hue, style in (("executor", VERMILION, "-"), ("worker", GREY, ":")):
        times_s = [fault.at_s for fault in about.faults if fault.victim == victim]
        for number, at_s in enumerate(times_s):
            label = None if number else f"{victim} killed"
            axes.axvline(at_s, color=hue, linestyle=style, linewidth=0.9, label=label)
