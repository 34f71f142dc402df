"""All bouts: every entrant on every workload with every seed, side by side on all cores, and the oracle's."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING

import msgspec

from penstock.arena.entrants import create_entrant
from penstock.arena.moments import moment_of
from penstock.arena.oracle_cache import plan_for
from penstock.arena.score import Score, Standing, Trail, score, standing
from penstock.arena.workloads import gentle
from penstock.control.loop import Controller
from penstock.orphans import end_with
from penstock.sim.engine import SimulatedEngine
from penstock.sim.memory import keep_freed_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.arena.oracle import Plan
    from penstock.arena.workloads import Workload
    from penstock.sim.model import FlowModel

ORACLE = "the oracle"
GENTLE = "all with a gentle load"
SUDDEN = "all others"


class BoutError(RuntimeError):
    """A policy raised an error; the message says which, and on what."""


@dataclass(frozen=True, slots=True)
class Bout:
    """Somebody, or the oracle, on the flow of a workload's seed."""

    workload: str
    seed: int
    who: str
    flow: FlowModel


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """The oracle on a workload with a seed; `attempts` is how many intervals its search simulated."""

    workload: str
    seed: int
    gentle: bool
    held: float
    replica_hours: float
    core_hours: float
    attempts: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an arena comes to."""

    scores: list[Score]
    oracle: list[Foreseen]
    skipped: list[str] = []

    def standings(self) -> list[Standing]:
        """Of every policy on every workload, in the order of the scores."""
        return [standing(scores) for scores in _by(self.scores, lambda one: (one.workload, one.policy))]

    def summary(self) -> list[Standing]:
        """Of every policy over all bouts with a gentle load, and over all others."""
        gentle_first = sorted(self.scores, key=lambda one: not one.gentle)
        return [
            standing(scores, GENTLE if scores[0].gentle else SUDDEN)
            for scores in _by(gentle_first, lambda one: (one.gentle, one.policy))
        ]


def play(flow: FlowModel, who: str, seed: int) -> Trail:
    """One run of an entrant."""
    engine = SimulatedEngine(flow, seed)
    controller = Controller(engine, create_entrant(who), lambda: engine.now_s)
    moments = []
    for _ in controller.cycles():
        assert engine.last is not None
        moments.append(moment_of(engine.last))
    return Trail(moments, engine.actions)


def fight(
    workloads: Sequence[Workload],
    entrants: Sequence[str],
    *,
    cache: Path | None,
    processes: int | None = None,
    told: Callable[[Bout, int, int], None] = lambda bout, done, whole: None,  # noqa: ARG005
) -> Outcome:
    """All bouts; `told` hears of each that is done."""
    flows = {(workload.name, seed): workload.flow(seed) for workload in workloads for seed in workload.seeds}
    # The oracle's take longest: begun first, they do not hold up the end.
    bouts = [Bout(*of, who, flow) for who in (ORACLE, *entrants) for of, flow in flows.items()]
    found: dict[tuple[str, int, str], Trail | Plan] = {}
    results = _side_by_side(bouts, cache, min(processes or os.cpu_count() or 1, len(bouts)))
    for done, (bout, result) in enumerate(results, start=1):
        found[bout.workload, bout.seed, bout.who] = result
        told(bout, done, len(bouts))
    is_gentle = {of: gentle(flow) for of, flow in flows.items()}
    plans: dict[tuple[str, int], Plan] = {of: found[*of, ORACLE] for of in flows}  # type: ignore[misc]
    trails: Mapping[tuple[str, int, str], Trail] = found  # type: ignore[assignment]
    return Outcome(
        scores=[
            score(*of, who, trails[*of, who], plan, gentle=is_gentle[of])
            for of, plan in plans.items()
            for who in entrants
        ],
        oracle=[_foreseen(*of, plan, gentle=is_gentle[of]) for of, plan in plans.items()],
    )


def _run(bout: Bout, cache: Path | None) -> Trail | Plan:
    keep_freed_memory()
    if bout.who == ORACLE:
        return plan_for(bout.flow, bout.seed, cache)
    try:
        return play(bout.flow, bout.who, bout.seed)
    except Exception as error:
        raise BoutError(
            f"policy {bout.who} on {bout.workload}, seed {bout.seed}: {type(error).__name__}: {error}"
        ) from error


def _side_by_side(
    bouts: Sequence[Bout], cache: Path | None, processes: int
) -> Iterator[tuple[Bout, Trail | Plan]]:
    """Each with its result as soon as it is there, from workers that end with this process."""
    if processes < 2:
        for bout in bouts:
            yield bout, _run(bout, cache)
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), end_with, (os.getpid(),))
    try:
        waiting = {pool.submit(_run, bout, cache): bout for bout in bouts}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        # When something went wrong, what has not begun is dropped.
        pool.shutdown(cancel_futures=True)


def _foreseen(workload: str, seed: int, plan: Plan, *, gentle: bool) -> Foreseen:
    return Foreseen(
        workload=workload,
        seed=seed,
        gentle=gentle,
        held=plan.held / max(1, len(plan.moments)),
        replica_hours=plan.cost_s / 3600.0,
        core_hours=plan.core_s / 3600.0,
        attempts=plan.attempts,
    )


def _by(scores: Sequence[Score], key: Callable[[Score], object]) -> list[list[Score]]:
    groups: dict[object, list[Score]] = {}
    for one in scores:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())
