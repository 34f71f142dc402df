"""All trials of some rows. What is timed goes first; what is not goes side by side, to be over sooner."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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


class Lanes(NamedTuple):
    """Trials of rows of some kinds, so many at a time."""

    kinds: tuple[Where, ...]
    number: int
    is_timed: bool

    def holds(self, row: Row) -> bool:
        """Whether its trials are carried out here."""
        return row.where in self.kinds and row.is_timed == self.is_timed


PHASES = (
    (Lanes(("local",), 2, is_timed=True),),  # a flow is at a fifth of what the machine carries: two may run
    (Lanes(("cluster",), 1, is_timed=True),),
    (Lanes(("cluster",), 1, is_timed=False),),  # executors that start beside others take a minute
    (Lanes(("own", "hosts"), 1, is_timed=True),),
    (Lanes(("own", "hosts"), 2, is_timed=False), Lanes(("local",), 2, is_timed=False)),
)
"""One after the other; those of one phase at the same time."""


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


def run_rows(rows: Sequence[Row], seed: int, repeats: int, say: Say) -> Iterator[Ran]:
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
            yield from _carried_out(phase, possible, seed, repeats, carried_out, say)


def _carried_out(
    phase: Sequence[Lanes],
    rows: Sequence[Row],
    seed: int,
    repeats: int,
    carry_out: Callable[[Row, int], Outcome],
    say: Say,
) -> Iterator[Ran]:
    """The rows of one phase, all lanes at the same time."""
    begun: list[tuple[Row, list[Future[Outcome]]]] = []
    with ExitStack() as pools:
        for lanes in phase:
            pool = ThreadPoolExecutor(lanes.number)
            pools.callback(pool.shutdown, cancel_futures=True)
            here = [row for row in rows if lanes.holds(row)]
            for where in dict.fromkeys(row.where for row in here):
                number = sum(row.where == where for row in here)
                say(f"{WHERE[where]}, {lanes.number} at a time: {number} rows")
            begun += [(row, [pool.submit(carry_out, row, n) for n in range(repeats)]) for row in here]
        for row, outcomes in begun:
            yield Ran(row, seed, [outcome.result() for outcome in outcomes])


def _words(row: Row, outcome: Outcome) -> str:
    failed = [check.name for check in outcome.checks if not check.ok]
    recovered = "" if outcome.recovered_s is None else f", bound holds again after {outcome.recovered_s:g} s"
    verdict = f"FAILED: {', '.join(failed)}" if failed else "ok"
    return f"{row.name}, {row.where}, {outcome.figures['took_s']:.0f} s: {verdict}{recovered}"
