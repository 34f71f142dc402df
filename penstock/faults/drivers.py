"""Drivers of a trial: `penstock run` in processes of their own, and what they leave behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import penstock as ps
from penstock.bench.checkout import Checkout
from penstock.faults.bed import RATE_PER_S, SINK, SOURCE, TASK, Bed
from penstock.faults.items import Once, Pass, Witness, numbers
from penstock.faults.leftovers import marked
from penstock.faults.tasks import Counts, key_of
from penstock.faults.victims import wait_until

PENSTOCK = (sys.executable, "-P", "-c", "from penstock.cli.main import app; app()")
MARK = "PENSTOCK_TRIAL"
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""For a Java that lives for half a minute: its second compiler would take more time than it saves."""
ORPHANS_END_S = 60.0
_COUNT = count()


def flow(
    directory: str,
    seconds: float | None = None,
    *,
    once: bool = False,
    counts: bool = False,
    replicas: int = 2,
) -> ps.Flow:
    """What `penstock run` runs: the flow of a trial whose bed is in a directory; it may count by key."""
    made = ps.Flow("trial", ids=once)
    kept = Path(directory) / "kept"
    source = made.source(numbers(RATE_PER_S, seconds, Path(directory) / "zero"), name=SOURCE)
    if counts:
        passed = source.by_key(key_of).task(Counts, name=TASK, parallelism=replicas)
    else:
        passed = source.task(Pass, name=TASK, parallelism=replicas)
    passed.sink(Once(kept) if once else Witness(str(kept)), name=SINK)
    return made


class Driver:
    """A process, and all that it starts."""

    def __init__(self, bed: Bed, command: Sequence[str], **variables: str) -> None:
        self.mark = f"{MARK}={bed.directory}/{next(_COUNT)}\0"
        place = bed.directory / "tmp"
        place.mkdir(exist_ok=True)
        environment = {
            **Checkout.own().environment(),
            MARK: self.mark.partition("=")[2].rstrip("\0"),
            "TMPDIR": str(place),
            "JAVA_TOOL_OPTIONS": f"{SHORT_LIVED} -Djava.io.tmpdir={place}",
            **variables,
        }
        with (bed.directory / "said").open("ab") as said:
            self.process = subprocess.Popen(
                command, env=environment, cwd=bed.directory, stdout=said, stderr=said, start_new_session=True
            )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, within_s: float = 90.0) -> int:
        """Its exit code."""
        return self.process.wait(within_s)


@contextmanager
def driver(bed: Bed, *options: str) -> Iterator[Driver]:
    """`penstock run`, with options of the flow; whatever happens, nothing of it lives on."""
    command = [*PENSTOCK, "run", f"{__name__}:flow", "--checkpoint", str(bed.checkpoint), "--commit", "2 s"]
    for option in (f"directory={bed.directory}", *options):
        command += ["--option", option]
    with started(bed, command) as running:
        yield running


@contextmanager
def started(bed: Bed, command: Sequence[str], **variables: str) -> Iterator[Driver]:
    """Any driver of this trial."""
    driver = Driver(bed, command, **variables)
    try:
        yield driver
    finally:
        for pid in [driver.process.pid, *marked(driver.mark)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        driver.process.wait()


def orphans(bed: Bed) -> list[int]:
    """Processes of drivers of this trial that are still there."""
    return marked(f"{MARK}={bed.directory}/")


def await_no_orphans(bed: Bed) -> None:
    """All that a driver has started ends with it."""
    wait_until(lambda: not orphans(bed), "what a driver has started ends", ORPHANS_END_S)


def private_directories(bed: Bed) -> list[str]:
    """Those that drivers of this trial have left in their place for temporary files."""
    return [str(entry) for entry in (bed.directory / "tmp").glob("penstock-*")]
