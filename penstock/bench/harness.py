"""What a bench reports: figures, and checks that hold a figure against a bar."""

import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import msgspec
from rich.console import Console
from rich.table import Table

from penstock.bench.tables import shown, tables

Operator = Literal["<=", "<", ">=", ">", "=="]
OPERATORS: Mapping[Operator, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}


class Effort(Enum):
    """How long a bench may take: QUICK is under a minute and less certain, FULL repeats everything."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Check:
    """`value op bar`, for example a ratio <= 2. A value that could not be measured is None and fails."""

    name: str
    value: float | None
    op: Operator
    bar: float

    @property
    def ok(self) -> bool:
        return self.value is not None and OPERATORS[self.op](self.value, self.bar)


@dataclass(frozen=True, slots=True)
class Result:
    """One bench: `figures` are whatever it measured (units in the names), `checks` what they must keep."""

    bench: str
    figures: Mapping[str, Any]
    checks: Sequence[Check]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def to_json(self) -> str:
        """One JSON object, on one line."""
        checks = [
            {"name": c.name, "value": c.value, "op": c.op, "bar": c.bar, "ok": c.ok} for c in self.checks
        ]
        whole = {"bench": self.bench, "figures": dict(self.figures), "checks": checks, "ok": self.ok}
        return msgspec.json.encode(whole).decode()

    def show(self, console: Console) -> None:
        """For people."""
        for table in tables(self.figures, self.bench):
            console.print(table)
        if not self.checks:
            return
        checks = Table("check", title=f"{self.bench}: {'ok' if self.ok else 'FAILED'}", title_justify="left")
        for heading in ("value", "bar", ""):
            checks.add_column(heading, justify="right")
        for check in self.checks:
            verdict = "[green]ok" if check.ok else "[red]FAILED"
            checks.add_row(check.name, shown(check.value), f"{check.op} {shown(check.bar)}", verdict)
        console.print(checks)


Bench = Callable[[Effort], Result]


def median(values: Sequence[float]) -> float | None:
    """The middle of the repetitions; None without any."""
    return statistics.median(values) if values else None


def median_ratio(above: Sequence[float | None], below: Sequence[float | None]) -> float | None:
    """The middle of the ratios within turns that both have."""
    found = [ratio(*pair) for pair in zip(above, below, strict=True)]
    return median([one for one in found if one is not None])


def ratio(above: float | None, below: float | None) -> float | None:
    """None if one of them was not measured, or there is nothing to divide by."""
    return above / below if above is not None and below else None
