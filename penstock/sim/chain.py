"""A chain: the first task's process runs the later tasks too, with no queue and no shipping in between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.aggregate import group_copies, meter_groups
from penstock.sim.arrays import Floats, Ints, sums_of_runs

if TYPE_CHECKING:
    from penstock.sim.model import StreamModel
    from penstock.sim.stage import Stage


@dataclass(frozen=True, slots=True)
class Grouped:
    """A grouping task in a chain: how often each item entered and left it, and the work up to its end."""

    stage: Stage
    entered: Ints
    left: Ints
    work_so_far: Floats


@dataclass(frozen=True, slots=True)
class Followed:
    """What the later tasks of a chain do with each item of the head: seconds of work, items leaving."""

    work: Floats
    leaving: Ints
    work_of_task: list[float]
    grouped: list[Grouped]

    def meter_groups(self, done: Floats, counts: Ints) -> None:
        """Read-write latency of grouping tasks; in a chain an item is read when the head is done with it."""
        for group in self.grouped:
            here = np.flatnonzero(group.entered)
            counts_here = sums_of_runs((group.entered > 0).astype(np.int64), counts).astype(np.int64)
            read = (done - self.work)[here]
            written = read + group.work_so_far[here]
            model, latency = group.stage.model, group.stage.meter.latency
            meter_groups(read, written, group.left[here], counts_here, model.group, latency)


@dataclass(frozen=True, slots=True)
class Chain:
    """The later tasks of a chain and the streams that lead to them; the head serves for all."""

    later: tuple[Stage, ...]
    links: tuple[StreamModel, ...]

    @property
    def group(self) -> int:
        """How many items of the head one leaving item derives from."""
        return math.prod(stage.model.group for stage in self.later)

    def follow(self, copies: Ints, counts: Ints, now_s: float, rng: np.random.Generator) -> Followed:
        """Pass every item of the head through the later tasks."""
        work = np.zeros(copies.size)
        totals: list[float] = []
        grouped: list[Grouped] = []
        for stage, link in zip(self.later, self.links, strict=True):
            copies = dealt(copies, link.ratio.at(now_s), rng)
            service = stage.draw(int(copies.sum()))
            work += sums_of_runs(service, copies)
            totals.append(float(service.sum()))
            stage.meter.book_chained(copies, service, counts, own_latency=not stage.model.aggregates)
            if stage.model.group > 1:
                entered = copies
                copies = group_copies(entered, counts, stage.group_filled, stage.model.group)
                grouped.append(Grouped(stage, entered, copies, work.copy()))
        return Followed(work, copies, totals, grouped)


def dealt(copies: Ints, ratio: float, rng: np.random.Generator) -> Ints:
    """Each of the copies becomes `ratio` items on average: the whole part surely, the rest by chance."""
    if ratio == 1.0:
        return copies
    whole = int(ratio)
    chance = ratio - whole
    if chance == 0.0:
        return copies * whole
    return copies * whole + rng.binomial(copies, chance)
