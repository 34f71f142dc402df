"""A bench of this checkout and of another one, in turn, and their medians against each other.

Each contestant is a process that stays from turn to turn; its first turn, in which Java is still compiling,
does not count. Contestants alternate, A B, B A, A B and so on, so that a machine that gets slower or faster
meets both. A turn that was disturbed is repeated, a few times at most; after that it counts, and the result
says so.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.bench.checkout import Ran, Report
from penstock.bench.compared import COMPARED, Better, Figure
from penstock.bench.conditions import Conditions
from penstock.bench.harness import Check, Result, median, ratio
from penstock.bench.reference import SLOWER_AT_MOST
from penstock.bench.registry import BENCHES, UnknownBenchError

TURNS = 5
REPEATS = 3
GUESSED_TURN_S = 50.0
QUIET_WAIT_S = 5.0
QUIET_WAITS = 6
THIS, AGAINST = "this", "against"


class Reference(Protocol):
    """The loop that tells how fast the machine is."""

    def slower(self) -> float:
        """How much slower than its best it is now; 0.1 is a tenth."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of a bench that was measured, by whom and under which conditions."""

    contestant: str
    report: Report
    conditions: Conditions


@dataclass(frozen=True, slots=True)
class Place:
    """Where a contest is: the turn `number` of `of`, tried for the `attempt`-th time."""

    bench: str
    number: int
    of: int
    contestant: str
    attempt: int
    left_s: float


class Progress(Protocol):
    """Who wants to know how far a contest is."""

    def warms_up(self, bench: str, contestant: str) -> None:
        """A turn that does not count begins."""

    def begins(self, place: Place) -> None:
        """A turn begins."""

    def waits(self, slower: float) -> None:
        """A turn waits, because the reference loop is that much slower than its best."""

    def ended(self, place: Place, turn: Turn) -> None:
        """A turn was measured; if it was disturbed and may be repeated, that comes next."""


def comparable(names: Sequence[str]) -> list[str]:
    """The benches asked for, all that can be compared if none is; others are refused."""
    for name in names:
        if name not in COMPARED:
            what = "cannot be compared with another checkout" if name in BENCHES else "does not exist"
            raise UnknownBenchError(f"bench {name!r} {what}; those that can be are {', '.join(COMPARED)}")
    return list(names or COMPARED)


def order(turns: int) -> Iterator[str]:
    """Who plays when: each twice in a row but for the first and the last turn."""
    for number in range(turns):
        yield from (AGAINST, THIS) if number % 2 else (THIS, AGAINST)


@dataclass(frozen=True, slots=True)
class Contest:
    """Two contestants on one machine; each is a function that runs a bench by name."""

    contestants: Mapping[str, Callable[[str], Ran]]
    opponent: Path
    reference: Reference
    progress: Progress
    turns: int = TURNS
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def run(self, bench: str) -> Result:
        """All turns of one bench."""
        counted: list[Turn] = []
        tried: list[float] = []
        for contestant in (THIS, AGAINST):
            self.progress.warms_up(bench, contestant)
            self.contestants[contestant](bench)
        for number, contestant in enumerate(order(self.turns), start=1):
            for attempt in range(1, REPEATS + 2):
                mean_s = sum(tried) / len(tried) if tried else GUESSED_TURN_S
                left_s = mean_s * (2 * self.turns + 1 - number)
                place = Place(bench, number, 2 * self.turns, contestant, attempt, left_s)
                began_s = self.clock()
                turn = self._turn(place)
                tried.append(self.clock() - began_s)
                self.progress.ended(place, turn)
                if not turn.conditions.disturbances:
                    break
            counted.append(turn)
        return summarise(bench, counted, self.opponent, repeated=len(tried) - len(counted))

    def _turn(self, place: Place) -> Turn:
        before = self._quiet()
        self.progress.begins(place)
        ran = self.contestants[place.contestant](place.bench)
        after = self.reference.slower()
        cores = os.cpu_count() or 1
        conditions = Conditions(before, after, ran.neighbours_cores / cores, ran.stolen_cores / cores)
        return Turn(place.contestant, ran.report, conditions)

    def _quiet(self) -> float:
        """Wait for a quiet moment rather than measure what must be repeated; not for ever."""
        slower = self.reference.slower()
        for _ in range(QUIET_WAITS):
            if slower <= SLOWER_AT_MOST:
                break
            self.progress.waits(slower)
            self.sleep(QUIET_WAIT_S)
            slower = self.reference.slower()
        return slower


def summarise(bench: str, turns: Sequence[Turn], opponent: Path, *, repeated: int) -> Result:
    """Every figure of both with its median; a check for each that has a bar."""
    figures: dict[str, Any] = {"against": str(opponent)}
    checks = []
    for figure in COMPARED[bench]:
        values = {name: _values(figure, turns, name) for name in (THIS, AGAINST)}
        middle = {name: _middle(taken) for name, taken in values.items()}
        compared = ratio(middle[THIS], middle[AGAINST])
        figures[figure.name] = {**middle, "ratio": compared} | {f"turns_{n}": v for n, v in values.items()}
        if figure.worse_at_most is not None:
            checks.append(_check(figure, compared, figure.worse_at_most))
    figures["turns_repeated"] = repeated
    figures["disturbed_turns_that_count"] = [
        f"{turn.contestant}: {'; '.join(turn.conditions.disturbances)}"
        for turn in turns
        if turn.conditions.disturbances
    ]
    figures["bars_missed"] = {name: _missed(turns, name) for name in (THIS, AGAINST)}
    checks.append(Check("items lost, duplicated or reordered", _harm(turns), "==", 0))
    return Result(f"{bench} against", figures, checks)


def _values(figure: Figure, turns: Sequence[Turn], contestant: str) -> list[float | None]:
    return [figure.value_in(turn.report.figures) for turn in turns if turn.contestant == contestant]


def _middle(values: Sequence[float | None]) -> float | None:
    """None if a turn could not measure it: the median of the others would flatter."""
    known = [value for value in values if value is not None]
    return median(known) if len(known) == len(values) else None


def _check(figure: Figure, compared: float | None, worse_at_most: float) -> Check:
    name = f"{figure.name}, this / against"
    if figure.better is Better.LOWER:
        return Check(name, compared, "<=", 1 + worse_at_most)
    return Check(name, compared, ">=", 1 - worse_at_most)


def _missed(turns: Sequence[Turn], contestant: str) -> list[str]:
    """Checks of the bench itself that failed, once for each turn."""
    own = [turn for turn in turns if turn.contestant == contestant]
    return [check.name for turn in own for check in turn.report.checks if not check.ok]


def _harm(turns: Sequence[Turn]) -> float | None:
    """What went wrong with items in this checkout's turns: the checks of a bench that allow none."""
    found = [
        check.value
        for turn in turns
        if turn.contestant == THIS
        for check in turn.report.checks
        if check.op == "=="
    ]
    known = [abs(value) for value in found if value is not None]
    return sum(known) if len(known) == len(found) else None
