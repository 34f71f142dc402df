"""A process in a session of its own that answers questions, and what its neighbours did meanwhile.

A question is a line of its standard input. Its answer is the next line of its standard output that begins
with `ANSWER`; lines that begin with `NOTE` say how far it is, and whatever else it says there is passed over.
"""

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from penstock.bench.neighbours import look, neighbours_cpu_s, stolen_s
from penstock.termination import terminated_as_an_exit

ANSWER = "answer: "
NOTE = "note: "
ENDS_WITHIN_S = 10.0
LOOK_S = 0.2


class SessionEndedError(RuntimeError):
    """The process ended, or did not answer in time; the message is the end of what it said."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer; how many cores neighbours took and were stolen until it came."""

    text: str
    neighbours_cores: float
    stolen_cores: float


class OwnSession:
    """Ends with all of its processes when it is closed, or when this process is terminated meanwhile."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], directory: Path) -> None:
        self._said: queue.Queue[str | None] = queue.Queue()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the session
        self._child = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, name="penstock-session", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Of the process; all that it starts is below it."""
        return self._child.pid

    def ask(self, question: str, timeout_s: float, noted: Callable[[str], None] = lambda _: None) -> Answered:
        """Wait for the answer; `noted` is given the notes that come before it."""
        before, began_s = look(), time.monotonic()
        with terminated_as_an_exit():  # a session of its own would go on: it is ended first
            text = self._answer(question, began_s + timeout_s, noted)
        after, seconds = look(), time.monotonic() - began_s
        neighbours_s = neighbours_cpu_s(before, after, session=self._child.pid)
        return Answered(text, neighbours_s / seconds, stolen_s(before, after) / seconds)

    def _answer(self, question: str, deadline_s: float, noted: Callable[[str], None]) -> str:
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(question + "\n")
            self._child.stdin.flush()
        while True:
            try:
                line = self._said.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                raise SessionEndedError("it did not answer in time") from None
            if line is None:
                code = self._child.wait()
                raise SessionEndedError(f"exit code {code}\n{self._end_of_errors()}")
            if line.startswith(ANSWER):
                return line.removeprefix(ANSWER)
            if line.startswith(NOTE):
                noted(line.removeprefix(NOTE).rstrip("\n"))

    def _listen(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._said.put(line)
        self._said.put(None)

    def _end_of_errors(self) -> str:
        self._errors.seek(0)
        return "".join(self._errors.readlines()[-15:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """The session's processes, Spark among them, end with the first, and are made to if they do not."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(BrokenPipeError):
            child.stdin.close()
        if child.poll() is None:
            _signal(child.pid, signal.SIGTERM)
        patience_s = ENDS_WITHIN_S
        while patience_s > 0 and _has_members(child.pid):
            child.poll()
            time.sleep(LOOK_S)
            patience_s -= LOOK_S
        _signal(child.pid, signal.SIGKILL)
        child.wait()
        self._listener.join()
        child.stdout.close()
        self._errors.close()


def _has_members(session: int) -> bool:
    return any(process.session == session for process in look().processes.values())


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
