"""Names of flows, tasks, outputs and constraints: which are allowed, and which one a task gets by default."""

import functools
import re
from typing import Final

from penstock.flow.errors import FlowError

LONGEST_NAME: Final = 64
# No dot, no ">" and no blank: "a.late->b" must read in one way only.
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def check_name(name: object, what: str) -> str:
    """The name itself, or a refusal that begins with `what`, for example 'flow "primes": task name'."""
    if not isinstance(name, str):
        raise FlowError(f"{what} must be a string, not {name!r}")
    if not name:
        raise FlowError(f"{what} is empty; give it at least one letter")
    if len(name) > LONGEST_NAME:
        raise FlowError(f"{what} {name!r} has {len(name)} characters; at most {LONGEST_NAME} are allowed")
    if _NAME.fullmatch(name) is None:
        raise FlowError(
            f"{what} {name!r} is not allowed; use letters, digits, _ and -, beginning with a letter or _"
        )
    return name


def own_name(body: object) -> str | None:
    """The name that a function, a class or an object brings along; None for a lambda, which has none."""
    while isinstance(body, functools.partial):
        body = body.func
    name = getattr(body, "__name__", None)
    if not isinstance(name, str):
        name = type(body).__name__
    return None if name == "<lambda>" else name
