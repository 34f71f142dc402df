"""What was found out about one thing that a flow needs."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "doubtful", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`wrong` keeps flows from running, `doubtful` may disturb them; both have a remedy."""

    what: str
    state: State
    found: str
    remedy: str | None = None


def ok(what: str, found: str) -> Finding:
    """As it should be."""
    return Finding(what, "ok", found)


def doubtful(what: str, found: str, remedy: str) -> Finding:
    """Works, perhaps not well."""
    return Finding(what, "doubtful", found, remedy)


def wrong(what: str, found: str, remedy: str) -> Finding:
    """No flow runs with it."""
    return Finding(what, "wrong", found, remedy)
