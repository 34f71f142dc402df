"""All trials of some rows, row by row: those that share a Spark one after the other."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice, product
from queue import SimpleQueue
from typing import NamedTuple, get_args

from penstock.faults.row import Outcome, Ran, Row, Where
from penstock.faults.sessions import Stage, stage

Say = Callable[[str], None]
WHERE = {
    "local": "Spark in one process",
    "cluster": "Spark with two executors",
    "own": "drivers of their own",
    "hosts": "hosts of their own",
}
_SIDE_BY_SIDE = {"local", "own"}
_LANES = 2
"""Where nothing is timed, trials that share nothing are carried out side by side."""


class _Trial(NamedTuple):
    row: Row
    seed: int
    number: int
    place: str


def run_rows(rows: Sequence[Row], seed: int, repeats: int, say: Say) -> Iterator[Ran]:
    """Each row as soon as its trials are over; `say` is told how it goes."""
    total, done = len(rows) * repeats, 0
    for where, timed in product(get_args(Where), (True, False)):
        here = [row for row in rows if row.where == where and row.is_timed == timed]
        if not here:
            continue
        lanes = 1 if timed or where not in _SIDE_BY_SIDE else _LANES
        say(f"{WHERE[where]}{', two at a time' if lanes > 1 else ''}: {len(here)} rows")
        skipped = {row.name: why for row in here if (why := row.lacks())}
        trials = []
        for row in here:
            places = range(done + 1, done + 1 + repeats)
            done += repeats
            if row.name not in skipped:
                trials += [_Trial(row, seed, n, f"{place} of {total}") for n, place in enumerate(places)]
        outcomes = _carried_out(where, min(lanes, len(trials)), trials, say)
        for row in here:
            if row.name in skipped:
                say(f"{row.name}: skipped, {skipped[row.name]}")
                yield Ran(row, seed, [], skipped[row.name])
            else:
                yield Ran(row, seed, [*islice(outcomes, repeats)])


def _carried_out(where: Where, lanes: int, trials: Sequence[_Trial], say: Say) -> Iterator[Outcome]:
    """The trials of one kind, in their order."""
    free: SimpleQueue[Stage] = SimpleQueue()

    def on_a_free_stage(trial: _Trial) -> Outcome:
        on = free.get()
        try:
            return _told(on, trial, say)
        finally:
            free.put(on)

    with ExitStack() as stages:
        for _ in range(lanes):
            free.put(stages.enter_context(stage(where)))
        if lanes > 1:
            yield from stages.enter_context(ThreadPoolExecutor(lanes)).map(on_a_free_stage, trials)
        else:
            yield from map(on_a_free_stage, trials)


def _told(on: Stage, trial: _Trial, say: Say) -> Outcome:
    row = trial.row
    began_s = time.monotonic()
    outcome = on.trial(row, trial.seed, trial.number)
    took_s = time.monotonic() - began_s
    failed = [check.name for check in outcome.checks if not check.ok]
    recovered = "" if outcome.recovered_s is None else f", bound holds again after {outcome.recovered_s:g} s"
    verdict = f"FAILED: {', '.join(failed)}" if failed else "ok"
    say(f"{trial.place}: {row.name}, {row.where}, {took_s:.0f} s: {verdict}{recovered}")
    outcome.figures["took_s"] = round(took_s, 1)
    return outcome
