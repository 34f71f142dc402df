"""One run of the evaluation: a flow under a policy, recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext

import penstock
from penstock.control.control_plan import ControlPlan
from penstock.control.live_settings import (
    COMPRESSED_INTERVAL,
    COMPRESSED_SHRINK_POOLS_AFTER,
    compressed_settings,
)
from penstock.flow import Flow
from penstock.spark.spark_logs import silenced

# Rates are low, so every item is measured.
SAMPLING = 1.0
# What a policy left waiting in queues would take minutes to work off; it is of no interest any more.
_DRAIN_S = 10.0


class TrialFailed(RuntimeError):  # noqa: N818 - said of a trial, as of a job
    """A run did not come to its end; the message names it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A run with the name of its recording; `run` takes the file and returns when the flow is over."""

    name: str
    seconds: float
    run: Callable[[Path], None]


def trial_plan(policy: str, settings: tuple[str, ...], recording: Path) -> ControlPlan:
    """The one set of defaults for all runs; `settings` are what a run is about, such as chaining=off."""
    return ControlPlan(
        policy,
        settings=(*compressed_settings(policy), *settings),
        interval=COMPRESSED_INTERVAL,
        recording=recording,
        shrink_pools_after=COMPRESSED_SHRINK_POOLS_AFTER,
    )


def controlled(name: str, seconds: float, make: Callable[[Path], Flow], policy: str, *settings: str) -> Trial:
    """`make` is told where the recording is, and may put files of its own beside it."""

    def run(recording: Path) -> None:
        plan = trial_plan(policy, settings, recording)
        job = penstock.run(
            make(recording),
            sampling=SAMPLING,
            policy=plan.policy,
            settings=plan.settings,
            interval=plan.interval,
            recording=plan.recording,
            shrink_pools_after=plan.shrink_pools_after,
        )
        try:
            job.await_termination(seconds + _DRAIN_S)
        finally:
            _end(job)
        if job.control is not None and job.control.problem is not None:
            raise TrialFailed(f"run {name!r} of the evaluation: {job.control.problem}")

    return Trial(name, seconds, run)


def _end(job: penstock.Job) -> None:
    with silenced(SparkContext.getOrCreate()):
        job.abandon()
