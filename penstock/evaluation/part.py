"""What the evaluation says of one application: tables, checks and pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from matplotlib.figure import Figure

from penstock.bench.harness import Check
from penstock.evaluation.trial import Trial
from penstock.report.history import History

Runs = Mapping[str, History]
"""The recordings of an application by the names of its trials."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a header."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Picture:
    """Drawn when the document is written; `name` is that of its file."""

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True, slots=True)
class Part:
    """`about` says what was run, `differs` what is not as in the paper."""

    title: str
    about: str
    tables: Sequence[Table]
    differs: str
    checks: Sequence[Check] = ()
    pictures: Sequence[Picture] = ()


class Application(Protocol):
    """A module of the evaluation."""

    def trials(self) -> list[Trial]:
        """The runs, in the order in which they are made."""
        ...

    def part(self, runs: Runs) -> Part:
        """What they showed."""
        ...


def percent(share: float | None) -> str:
    """A share in words of a table."""
    return "–" if share is None else f"{share:.1%}".replace("%", " %")


def ms(value: float | None) -> str:
    """A time in words of a table."""
    return "–" if value is None else f"{value:,.1f} ms"


def number(value: float | None, digits: int = 2) -> str:
    """A plain figure in words of a table."""
    return "–" if value is None else f"{value:,.{digits}f}"
