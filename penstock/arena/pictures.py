"""One picture per workload: how much each policy holds against what it costs, the oracle in the corner."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.arena.bouts import Outcome
    from penstock.arena.score import Standing


def draw(outcome: Outcome, directory: Path) -> list[Path]:
    """A PNG for each workload with something to scale, named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    standings = outcome.standings()
    for workload in dict.fromkeys(one.workload for one in standings):
        shown = [one for one in standings if one.workload == workload and None not in (one.held, one.cost)]
        if shown:
            path = directory / f"arena_{re.sub('[^a-z0-9]+', '_', workload)}.png"
            _picture(workload, shown).savefig(path, dpi=100)
            paths.append(path)
    return paths


def _picture(workload: str, standings: Sequence[Standing]) -> Any:
    """Matplotlib is an extra and is imported only here."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.plot([1.0], [100.0], "k*", markersize=14)
    axes.annotate("oracle", (1.0, 100.0), xytext=(6, -12), textcoords="offset points")
    for (cost, held), names in _together(standings).items():
        (point,) = axes.plot([cost], [held], "o")
        axes.annotate(
            ", ".join(names), (cost, held), xytext=(6, 4), textcoords="offset points", color=point.get_color()
        )
    axes.set(
        title=f"{workload}, simulated",
        xlabel="replica-hours over the oracle's",
        ylabel="held of what the oracle holds [%]",
        ylim=(-5.0, 108.0),
    )
    axes.grid(visible=True, linewidth=0.3)
    axes.margins(x=0.2)
    return figure


def _together(standings: Sequence[Standing]) -> dict[tuple[float, float], list[str]]:
    """Policies by where they are; those that would cover each other share a place."""
    places: dict[tuple[float, float], list[str]] = {}
    for one in standings:
        if one.cost is not None and one.held is not None:
            places.setdefault((round(one.cost, 2), round(100.0 * one.held, 1)), []).append(one.policy)
    return places
