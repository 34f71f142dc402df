"""How much each policy holds against what it costs, the oracle in the corner.

One picture for each workload, and one each for all gentle loads and all others. A policy that entered with
several settings is a curve.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

MARKERS = "osD^vPX"

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.arena.bouts import Outcome
    from penstock.arena.score import Standing


def draw(outcome: Outcome, directory: Path) -> list[Path]:
    """A PNG for each workload and group with something to scale, named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for standings in (outcome.standings(), outcome.summary()):
        for name in dict.fromkeys(one.workload for one in standings):
            shown = [one for one in standings if one.workload == name and None not in (one.held, one.cost)]
            if shown:
                path = directory / f"arena_{re.sub('[^a-z0-9]+', '_', name)}.png"
                _picture(name, shown).savefig(path, dpi=100)
                paths.append(path)
    return paths


def _picture(name: str, standings: Sequence[Standing]) -> Any:
    """Matplotlib is an extra and is imported only here. Names stand beside the plot: points may be close."""
    from matplotlib.figure import Figure

    from penstock.report.colours import colour

    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.plot([1.0], [100.0], "k*", markersize=14, linestyle="none", label="oracle")
    for number, (policy, points) in enumerate(curves(standings).items()):
        tint, marker = colour(number), MARKERS[number % len(MARKERS)]
        costs, held = [cost for cost, _, _ in points], [held for _, held, _ in points]
        style = "-" if len(points) > 1 else "none"
        varied, labels = _labels([setting for _, _, setting in points])
        label = f"{policy}, {varied}" if varied else policy
        axes.plot(costs, held, linestyle=style, marker=marker, color=tint, label=label)
        # Above and below in turn: those of a curve may be close.
        for place, (cost, percent, text) in enumerate(zip(costs, held, labels, strict=True)):
            offset = (0, -14 if place % 2 else 8)
            axes.annotate(
                text,
                (cost, percent),
                xytext=offset,
                textcoords="offset points",
                color=tint,
                fontsize="small",
                ha="center",
            )
    axes.set(
        title=f"{name}, simulated",
        xlabel="replica-hours over the oracle's",
        ylabel="held of what the oracle holds [%]",
        ylim=(-5.0, 108.0),
    )
    axes.grid(visible=True, linewidth=0.3)
    axes.margins(x=0.2)
    axes.legend(
        fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False
    )
    return figure


def _labels(settings: Sequence[str]) -> tuple[str, list[str]]:
    """What all of them set, if they set one thing, and what stands beside each point."""
    names = {setting.partition("=")[0] for setting in settings}
    if len(settings) < 2 or len(names) > 1:
        return "", list(settings)
    return names.pop(), [setting.partition("=")[2] for setting in settings]


def curves(standings: Sequence[Standing]) -> dict[str, list[tuple[float, float, str]]]:
    """By policy: cost, percent held and settings of each time it entered; who would cover others shares."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    names: dict[tuple[float, float], str] = {}
    for one in standings:
        if one.cost is None or one.held is None:
            continue
        policy, _, setting = one.policy.partition(" ")
        point = (round(one.cost, 2), round(100.0 * one.held, 1))
        if not setting and point in names:
            other = names[point]
            found[f"{other}, {policy}"] = found.pop(other)
            names[point] = f"{other}, {policy}"
            continue
        found.setdefault(policy, []).append((*point, setting))
        if not setting:
            names[point] = policy
    return found
