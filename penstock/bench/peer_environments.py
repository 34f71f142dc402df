"""An environment of its own for each library that Penstock is compared with, made once, kept in the cache.

What these libraries need does not go together, nor with what Penstock needs.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.testing.kafka_jars import cache

_PATIENCE_S: Final = 900.0
_WHOLE: Final = "whole"


class PeerMissingError(RuntimeError):
    """A library cannot be installed here; the message is the last thing that was said of it."""


@dataclass(frozen=True, slots=True)
class Library:
    """What is installed, the program of `peer_programs` that uses it, and how: the settings are published."""

    requirements: tuple[str, ...]
    program: str
    settings: str


LIBRARIES: Final = {
    "bytewax": Library(
        ("bytewax==0.21.1",),
        "in_bytewax",
        "two processes of one worker each; every hop crosses from one to the other, by its key; a hop is"
        " stateful_batch; the source sleeps by next_awake and gives at most 100 items at once; no recovery",
    ),
    "pathway": Library(
        ("pathway==0.33.0",),
        "in_pathway",
        "one process, one worker; a hop is a function that is applied to a column; the source commits"
        " after each item; no persistence",
    ),
    "pyflink": Library(
        ("apache-flink==2.3.0",),
        "in_flink",
        "python.execution-mode=thread, execution.buffer-timeout.interval=0 ms, parallelism 1, no chaining,"
        " no checkpoints; one process; a hop is rebalance() and map; the source is a flat_map that sleeps",
    ),
}


def is_made(library: Library, place: Path | None = None) -> bool:
    """Whether its environment is there."""
    return (_home(library, place) / _WHOLE).exists()


def python_of(library: Library, place: Path | None = None) -> Path:
    """The interpreter of a library's environment, which is made if it is not there."""
    home = _home(library, place)
    if not is_made(library, place):
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(home)])
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        _run([*pip, *library.requirements])
        (home / _WHOLE).touch()
    return home / "bin" / "python"


def _home(library: Library, place: Path | None) -> Path:
    name = "-".join(library.requirements).replace("<", "-").replace("=", "")
    return (place or cache() / "peers") / name


def _run(command: Sequence[str]) -> None:
    """Without PYTHONPATH: what pip found there it would not install."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False, env=own
        )
    except subprocess.TimeoutExpired:
        raise PeerMissingError(f"not installed within {_PATIENCE_S:.0f} s") from None
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise PeerMissingError(said[-1] if said else f"exit code {done.returncode}")
