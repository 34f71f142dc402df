"""One trial: a bed, the fault, the checks, and what is left behind."""

import random
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

import penstock
from penstock.bench.harness import Check
from penstock.faults.bed import Bed
from penstock.faults.leftovers import left_behind, look
from penstock.faults.row import Outcome, Row
from penstock.spark.spark_logs import silenced

_LAST_LINES = 12


def trial(row: Row, seed: int, number: int) -> Outcome:
    """Carry a row out; the same seed and number give the same times of faults."""
    before = look()
    with tempfile.TemporaryDirectory(prefix="penstock-trial-") as directory:
        bed = Bed(Path(directory), random.Random(f"{seed} {row.name} {number}"))
        with quiet():
            try:
                outcome = row.run(bed)
            except Exception:  # noqa: BLE001 - a trial that breaks has failed, and the next one begins
                outcome = _broken(bed)
        left = left_behind(before)
    figures = {**outcome.figures, **({"left_behind": left} if left else {})}
    checks = [*outcome.checks, Check("left behind", len(left), "==", 0)]
    return replace(outcome, figures=figures, checks=checks)


def _broken(bed: Bed) -> Outcome:
    """It raised: what it said, and its flows are ended."""
    said = traceback.format_exc().splitlines()[-_LAST_LINES:]
    for job in bed.jobs:
        job.abandon()
    figures = {**bed.figures, "notices": bed.notices, "problem": said}
    return Outcome(figures, [*bed.checks, Check("trial came to its end", None, "==", 1)])


@contextmanager
def quiet() -> Iterator[None]:
    """Spark has a lot to say about what is done to it."""
    session = SparkSession.getActiveSession()
    if session is None:
        yield
        return
    with silenced(session.sparkContext):
        yield


def warm_up() -> None:
    """A flow that nobody looks at, so that Java's compilers are not paid for by the first trial."""
    with tempfile.TemporaryDirectory(prefix="penstock-trial-") as directory:
        bed = Bed(Path(directory), random.Random(0))
        job = penstock.run(bed.flow(3.0))
        job.await_termination(60)
