"""All trials of some rows. What is timed goes first; what is not goes side by side, to be over sooner."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from queue import Empty, SimpleQueue
from typing import NamedTuple

from penstock.faults.row import Outcome, Ran, Row, Where
from penstock.faults.sessions import Stage, stage

Say = Callable[[str], None]
WHERE: dict[Where, str] = {
    "local": "Spark in one process",
    "cluster": "Spark with two executors",
    "own": "drivers of their own",
    "hosts": "hosts of their own",
}


class Phase(NamedTuple):
    """Trials of rows of some kinds, one kind after the other, so many at a time."""

    kinds: tuple[Where, ...]
    lanes: int
    is_timed: bool

    def holds(self, row: Row) -> bool:
        """Whether its trials are carried out here."""
        return row.where in self.kinds and row.is_timed == self.is_timed


PHASES = (
    Phase(("local",), 2, is_timed=True),  # a flow is at a fifth of what the machine carries: two may run
    Phase(("cluster",), 1, is_timed=True),
    Phase(("cluster",), 1, is_timed=False),  # executors that start beside others take a minute
    Phase(("own", "hosts"), 1, is_timed=True),
    Phase(("own", "hosts", "local"), 4, is_timed=False),  # the longest first
)
"""One after the other."""


class _Stages:
    """Stages that are free, by kind; a trial that finds none gets a new one."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._free: dict[Where, SimpleQueue[Stage]] = {where: SimpleQueue() for where in WHERE}

    @contextmanager
    def one(self, where: Where) -> Iterator[Stage]:
        try:
            on = self._free[where].get_nowait()
        except Empty:
            on = self._open.enter_context(stage(where))
        try:
            yield on
        finally:
            self._free[where].put(on)

    def close(self) -> None:
        self._open.close()


def run_rows(rows: Sequence[Row], seed: int, repeats: int, say: Say) -> Generator[Ran]:
    """Each row as soon as it and those before it are over; `say` is told how it goes."""
    lacking = {row.name: why for row in rows if (why := row.lacks())}
    for row in rows:
        if row.name in lacking:
            say(f"{row.name}: skipped, {lacking[row.name]}")
            yield Ran(row, seed, [], lacking[row.name])
    possible = [row for row in rows if row.name not in lacking]
    done, total = count(1), len(possible) * repeats
    with closing(_Stages()) as stages:

        def carried_out(row: Row, number: int) -> Outcome:
            with stages.one(row.where) as on:
                began_s = time.monotonic()
                outcome = on.trial(row, seed, number)
            outcome.figures["took_s"] = round(time.monotonic() - began_s, 1)
            say(f"{next(done)} of {total}: {_words(row, outcome)}")
            return outcome

        for phase in PHASES:
            for row, outcomes in _carried_out(phase, possible, repeats, carried_out, say):
                yield Ran(row, seed, outcomes)


def _carried_out(
    phase: Phase,
    rows: Sequence[Row],
    repeats: int,
    carry_out: Callable[[Row, int], Outcome],
    say: Say,
) -> Iterator[tuple[Row, list[Outcome]]]:
    here = sorted(filter(phase.holds, rows), key=lambda row: phase.kinds.index(row.where))
    for where in dict.fromkeys(row.where for row in here):
        number = sum(row.where == where for row in here)
        say(f"{WHERE[where]}, {phase.lanes} at a time: {number} rows")
    with ExitStack() as ended:
        pool = ThreadPoolExecutor(phase.lanes)
        ended.callback(pool.shutdown, cancel_futures=True)
        begun = [(row, [pool.submit(carry_out, row, n) for n in range(repeats)]) for row in here]
        for row, outcomes in begun:
            yield row, [outcome.result() for outcome in outcomes]


def _words(row: Row, outcome: Outcome) -> str:
    failed = [check.name for check in outcome.checks if not check.ok]
    recovered = "" if outcome.recovered_s is None else f", bound holds again after {outcome.recovered_s:g} s"
    verdict = f"FAILED: {', '.join(failed)}" if failed else "ok"
    return f"{row.name}, {row.where}, {outcome.figures['took_s']:.0f} s: {verdict}{recovered}"
