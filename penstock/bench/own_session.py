"""A command in a session of its own: what it said, and what its neighbours on the machine did meanwhile."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from penstock.bench.neighbours import look, neighbours_cpu_s, stolen_s

ENDS_WITHIN_S = 10.0
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that came to its end; how many cores neighbours took and were stolen, while it ran."""

    code: int
    out: str
    err: str
    neighbours_cores: float
    stolen_cores: float


def run_in_own_session(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path, timeout_s: float
) -> Finished | None:
    """Run it and wait until all of its processes are gone; None if it was stopped after the timeout."""
    before, began_s = look(), time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            with _terminated_as_an_exit():
                code = child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(child)
        after, seconds = look(), time.monotonic() - began_s
        return Finished(
            code,
            _written(out),
            _written(err),
            neighbours_cpu_s(before, after, session=child.pid) / seconds,
            stolen_s(before, after) / seconds,
        )


@contextmanager
def _terminated_as_an_exit() -> Iterator[None]:
    """A session of its own would go on when this process is terminated: it is ended first."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _written(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _end(child: "subprocess.Popen[bytes]") -> None:
    """The session's processes, Spark among them, end with the first one, and are made to if they do not."""
    if child.poll() is None:
        _signal(child.pid, signal.SIGTERM)
    patience_s = ENDS_WITHIN_S
    while patience_s > 0 and _has_members(child.pid):
        child.poll()
        time.sleep(LOOK_S)
        patience_s -= LOOK_S
    _signal(child.pid, signal.SIGKILL)
    child.wait()


def _has_members(session: int) -> bool:
    return any(process.session == session for process in look().processes.values())


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
