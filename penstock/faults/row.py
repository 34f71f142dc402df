"""A row of the table of faults, and what a trial of it showed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.bench.harness import Check, Result, median

if TYPE_CHECKING:
    from penstock.faults.bed import Bed

Where = Literal["local", "cluster", "own", "hosts"]
"""The Spark that a trial shares: one process, two executors, or none because it starts drivers of its own,
perhaps on hosts of its own."""


class UnknownRowError(ValueError):
    """No row of the table has that name."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial measured; `recovered_s` is None where there is no fault to recover from, or no end."""

    figures: dict[str, Any]
    checks: list[Check]
    recovered_s: float | None = None


def possible() -> str:
    """Of a fault that can be made anywhere."""
    return ""


@dataclass(frozen=True, slots=True)
class Row:
    """`run` carries the fault out; the median of recoveries must be within `recovers_in_s`, if that is given.

    `lacks` says what a machine lacks on which the fault cannot be made: then the row is skipped, and says so.
    """

    name: str
    about: str
    where: Where
    run: "Callable[[Bed], Outcome]"
    recovers_in_s: float | None = None
    lacks: Callable[[], str] = possible

    @property
    def is_timed(self) -> bool:
        """Whether it matters what else the machine does."""
        return self.recovers_in_s is not None


@dataclass(frozen=True, slots=True)
class Ran:
    """The trials of a row, or why there are none."""

    row: Row
    seed: int
    outcomes: Sequence[Outcome]
    skipped: str = ""

    def result(self) -> Result:
        """In the form of a bench: of each check the worst trial counts, of recoveries the median."""
        figures: dict[str, Any] = {"about": self.row.about, "where": self.row.where, "seed": self.seed}
        if self.skipped:
            return Result(f"faults {self.row.name}", {**figures, "skipped": self.skipped}, [])
        recoveries = [one.recovered_s for one in self.outcomes if one.recovered_s is not None]
        figures["trials"] = [one.figures for one in self.outcomes]
        figures["recovered_s"] = [one.recovered_s for one in self.outcomes]
        checks = _worst([check for one in self.outcomes for check in one.checks])
        if self.row.recovers_in_s is not None:
            known = median(recoveries) if len(recoveries) == len(self.outcomes) else None
            checks.append(Check("bound holds again, median s", known, "<=", self.row.recovers_in_s))
        return Result(f"faults {self.row.name}", figures, checks)


def _worst(checks: Sequence[Check]) -> list[Check]:
    """One of each name: one that failed, if there is one."""
    found: dict[str, Check] = {}
    for check in checks:
        known = found.get(check.name)
        if known is None or (known.ok and not check.ok):
            found[check.name] = check
    return list(found.values())
