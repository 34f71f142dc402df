"""Drivers that are killed or told to end: `penstock run` in processes of their own."""

import os
import signal
import time
from functools import partial
from typing import Final

from penstock.faults.bed import Bed, committed
from penstock.faults.drivers import await_no_orphans, driver, private_directories
from penstock.faults.leftovers import marked
from penstock.faults.row import Outcome, Row
from penstock.faults.victims import wait_until

REFUSED: Final = 2
DEADLINE_S: Final = 20.0


def driver_killed(bed: Bed) -> Outcome:
    """Nothing but items to be read again."""
    bed.witness()
    return bed.outcome(counts=killed_and_resumed(bed))


def killed_and_resumed(bed: Bed, *options: str) -> dict[int, int]:
    """All of it ends; a start on the same checkpoint goes on after the last commit, and ends when told.

    What is committed then; `options` are those of the flow.
    """
    with driver(bed, *options) as first:
        wait_until(lambda: committed(bed.checkpoint), "a first commit", 90.0)
        bed.await_items(len(bed.entries()) + 600)
        bed.strike(partial(first.signal, signal.SIGKILL), 1.0, 4.0)
        began_s = time.monotonic()
        await_no_orphans(bed)
        bed.figures["orphans_end_s"] = round(time.monotonic() - began_s, 2)
    arrived = len(bed.entries())
    with driver(bed, *options) as second:
        bed.await_items(arrived + 1200)
        time.sleep(3.0)
        second.signal(signal.SIGTERM)
        bed.expect("exit code", second.wait(DEADLINE_S), "==", 0)
        await_no_orphans(bed)
    bed.expect("directories left", len(private_directories(bed)), "==", 0)
    return committed(bed.checkpoint)


def two_drivers(bed: Bed) -> Outcome:
    """The second is refused with who holds the checkpoint, and the first notices nothing."""
    bed.witness()
    with driver(bed) as first:
        bed.await_items(600)
        with driver(bed) as second:
            bed.expect("exit code of the second", second.wait(), "==", REFUSED)
        said = (bed.directory / "said").read_text()
        bed.expect("told in words", f"process {first.process.pid}" in said and "is held by" in said)
        bed.expect("the first runs on", first.process.poll() is None)
        first.signal(signal.SIGTERM)
        bed.expect("exit code", first.wait(DEADLINE_S), "==", 0)
        await_no_orphans(bed)
    return bed.outcome(counts=committed(bed.checkpoint))


def told_to_end(bed: Bed, number: signal.Signals, *, all_of_it: bool = False) -> Outcome:
    """Drains, commits, ends with exit code 0 within its deadline; Java and workers are told, too, or not."""
    bed.witness()
    with driver(bed) as started:
        bed.await_items(600)
        time.sleep(bed.chance.uniform(0.0, 3.0))
        began_s = time.monotonic()
        if number == signal.SIGINT:
            os.killpg(started.process.pid, number)  # as a terminal does
        else:
            for process in marked(started.mark) if all_of_it else [started.process.pid]:
                os.kill(process, number)
        bed.expect("exit code", started.wait(60.0), "==", 0)
        bed.expect("ended after, s", round(time.monotonic() - began_s, 2), "<=", DEADLINE_S)
        await_no_orphans(bed)
    bed.expect("directories left", len(private_directories(bed)), "==", 0)
    return bed.outcome(counts=committed(bed.checkpoint))


ROWS = (
    Row("kill-driver", "kill -9 the driver, and a start on the same checkpoint", "own", driver_killed),
    Row("two-drivers", "a second driver on the checkpoint of one that runs", "own", two_drivers),
    Row("sigterm", "SIGTERM under load", "own", partial(told_to_end, number=signal.SIGTERM)),
    Row(
        "sigterm-all",
        "SIGTERM under load to the driver, its Java and all workers",
        "own",
        partial(told_to_end, number=signal.SIGTERM, all_of_it=True),
    ),
    Row("ctrl-c", "Ctrl-C under load", "own", partial(told_to_end, number=signal.SIGINT)),
)
