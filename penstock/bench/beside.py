"""The same at the same time: contestants side by side, each in a process with a Spark of its own.

What an item costs drifts by a fifth and more within minutes on a machine that others use too, so who is
measured in turn is measured on another machine. Of those that run at the same time it takes the same.
"""

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar, get_type_hints

import msgspec

from penstock.bench.own_session import ANSWER, OwnSession

TIMEOUT_S: Final = 600.0
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Beside(Generic[Asked, Answer]):
    """So many processes that call a function of a module with what they are asked for."""

    def __init__(self, function: Callable[[Asked], Answer], count: int) -> None:
        self._command = [
            *(sys.executable, "-P", "-m", __name__),
            f"{function.__module__}:{function.__name__}",
        ]
        self._kind = get_type_hints(function)["return"]
        self._count = count
        self._open = ExitStack()
        self._sessions: list[OwnSession] = []

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            empty = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
            for _ in range(self._count):
                session = OwnSession(self._command, environment=os.environ, directory=empty)
                self._sessions.append(opened.enter_context(session))
            self._open = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def at_once(self, asked: Sequence[Asked]) -> list[Answer]:
        """One question for each process, and the answers in their order."""
        with ThreadPoolExecutor(self._count) as pool:
            return [*pool.map(self._ask, self._sessions, asked)]

    def alone(self, asked: Asked) -> Answer:
        """A question for the first, while the others have nothing to do."""
        return self._ask(self._sessions[0], asked)

    def _ask(self, session: OwnSession, asked: Asked) -> Answer:
        text = session.ask(msgspec.json.encode(asked).decode(), TIMEOUT_S).text
        answer: Answer = msgspec.json.decode(text, type=self._kind)
        return answer


def main(named: str) -> None:
    """Answer each line."""
    module, _, name = named.partition(":")
    function: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    (kind,) = [hint for part, hint in get_type_hints(function).items() if part != "return"]
    for line in sys.stdin:
        found = function(msgspec.json.decode(line, type=kind))
        print(ANSWER + msgspec.json.encode(found).decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
