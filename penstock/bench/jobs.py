"""Simulated runs side by side on all cores: what a bench needs of them comes back in the order asked for."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, TypeVar

from penstock.bench.telling import tell
from penstock.orphans import end_with
from penstock.policy.registry import create_from_settings
from penstock.sim.memory import keep_freed_memory
from penstock.sim.model import FlowModel
from penstock.sim.run import Run, simulate

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Job:
    """A flow model (a function and its arguments), and a policy with its settings."""

    model: Callable[..., FlowModel]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: str = "static"
    settings: tuple[str, ...] = ()
    seconds: float | None = None
    seed: int = 1


def run_all(jobs: Mapping[K, Job]) -> dict[K, Run]:
    """All runs by name."""
    processes = min(os.cpu_count() or 1, len(jobs))
    if processes < 2:
        return {name: run_one(job) for name, job in jobs.items()}
    with ProcessPoolExecutor(processes, get_context("spawn"), end_with, (os.getpid(),)) as pool:
        waiting = {name: pool.submit(run_one, job) for name, job in jobs.items()}
        for number, done in enumerate(as_completed(waiting.values()), 1):
            done.result()  # one that failed is told at once, not when all others are over
            tell(f"  {number} of {len(jobs)} runs simulated")
        return {name: future.result() for name, future in waiting.items()}


def run_one(job: Job) -> Run:
    """One run, in this process."""
    keep_freed_memory()
    flow = job.model(*job.arguments, **job.options)
    return simulate(flow, create_from_settings(job.policy, job.settings), seed=job.seed, seconds=job.seconds)
