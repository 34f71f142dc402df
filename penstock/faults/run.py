"""All trials of some rows: those that share a Spark one after the other, row by row."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import get_args

from penstock.faults.row import Outcome, Ran, Row, Where
from penstock.faults.sessions import Stage, stage

Say = Callable[[str], None]
WHERE = {
    "local": "Spark in one process",
    "cluster": "Spark with two executors",
    "own": "drivers of their own",
}


def run_rows(rows: Sequence[Row], seed: int, repeats: int, say: Say) -> Iterator[Ran]:
    """Each row as soon as its trials are over; `say` is told how it goes."""
    total, done = len(rows) * repeats, 0
    for where in get_args(Where):
        here = [row for row in rows if row.where == where]
        if not here:
            continue
        say(f"{WHERE[where]}: {len(here)} rows")
        with stage(where) as on:
            for row in here:
                if skipped := row.lacks():
                    say(f"{row.name}: skipped, {skipped}")
                    done += repeats
                    yield Ran(row, seed, [], skipped)
                    continue
                outcomes = []
                for number in range(repeats):
                    done += 1
                    outcomes.append(_told(on, row, seed, number, f"{done} of {total}", say))
                yield Ran(row, seed, outcomes)


def _told(on: Stage, row: Row, seed: int, number: int, place: str, say: Say) -> Outcome:
    began_s = time.monotonic()
    outcome = on.trial(row, seed, number)
    took_s = time.monotonic() - began_s
    failed = [check.name for check in outcome.checks if not check.ok]
    recovered = "" if outcome.recovered_s is None else f", bound holds again after {outcome.recovered_s:g} s"
    verdict = f"FAILED: {', '.join(failed)}" if failed else "ok"
    say(f"{place}: {row.name}, {row.where}, {took_s:.0f} s: {verdict}{recovered}")
    outcome.figures["took_s"] = round(took_s, 1)
    return outcome
