"""What only some commands and applications need is an extra; without it they say what to install."""

from importlib.util import find_spec


class MissingExtraError(RuntimeError):
    """A package is not installed; the message names the extra that brings it."""


def require(module: str, extra: str, purpose: str) -> None:
    """Refuse if a package is missing.

    >>> require("no_such_package", "report", "penstock report")
    Traceback (most recent call last):
    penstock.extras.MissingExtraError: penstock report needs no_such_package; install penstock[report]
    """
    if find_spec(module) is None:
        raise MissingExtraError(f"{purpose} needs {module}; install penstock[{extra}]")
