"""Runs of the evaluation one after the other, with what is under way and how long it takes."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import penstock
from penstock.apps.primetest import drop, prime_flow
from penstock.control.recording import delete_recording
from penstock.evaluation.document import recording_of
from penstock.evaluation.trial import SAMPLING, Trial
from penstock.io.schedule import steps

WARM_UP_S, WARM_UP_PER_S = 12, 1000


def run_trials(trials: Sequence[Trial], directory: Path, console: Console) -> None:
    """All of them; a recording that is there already is made anew, one that failed is not kept."""
    directory.mkdir(parents=True, exist_ok=True)
    whole_s = WARM_UP_S + sum(trial.seconds for trial in trials)
    console.print(f"{len(trials)} runs: {whole_s / 60:.0f} min, and some seconds for the start of each")
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console
    ) as progress:
        shown = progress.add_task("warming up")
        warm_up()
        for number, trial in enumerate(trials, start=1):
            progress.reset(
                shown, description=f"{number} of {len(trials)}: {trial.name}, {trial.seconds:.0f} s"
            )
            recording = recording_of(trial.name, directory)
            delete_recording(recording)
            try:
                trial.run(recording)
            except BaseException:
                delete_recording(recording)
                raise
            console.print(
                f"{trial.name}: recorded in {recording}", markup=False, highlight=False, soft_wrap=True
            )


def warm_up() -> None:
    """A flow that nobody looks at: Java's compilers would be paid for by the first run alone."""
    schedule = steps([(WARM_UP_S, WARM_UP_PER_S)])
    job = penstock.run(prime_flow(schedule, drop, testers=1), sampling=SAMPLING, policy=None)
    job.await_termination()
