"""What happens to an item that a task cannot process: fail, skip or dead letter, as its `on_error` says."""

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.flow.graph import OnError
from penstock.io.part_file import PartFile

_REPR_LIMIT = 2000


class Failures:
    """The error policy of one worker."""

    def __init__(
        self,
        task: str,
        replica: int,
        policy: OnError,
        dead_letters: str,
        fail: Callable[[dict[str, Any]], None],
    ) -> None:
        self.skipped = 0
        self.dead_lettered = 0
        self._task = task
        self._replica = replica
        self._policy = policy
        self._dead_letters = dead_letters
        self._letters: PartFile | None = None
        self._fail = fail

    def item_failed(self, item: Any, problem: BaseException) -> None:
        """An item that raised, or that could not be shipped."""
        trace = "".join(traceback.format_exception(problem))
        self._handle(item, f"{type(problem).__name__}: {problem}", trace)

    def item_killed(self, item: Any) -> None:
        """An item that ended the worker process again and again."""
        self._handle(item, "this item has killed its worker process three times", "")

    def broken(self, where: str, problem: BaseException) -> None:
        """An error outside any item (open, timer, flush, close, a source): always fatal."""
        trace = "".join(traceback.format_exception(problem))
        self._report(f"{where} raised {type(problem).__name__}: {problem}\n{trace}")

    def flush(self) -> None:
        """A batch is about to be committed: dead letters of its items are on the disk first."""
        if self._letters is not None:
            self._letters.sync()

    def _handle(self, item: Any, problem: str, trace: str) -> None:
        shown = _shown(item)
        if self._policy == "skip":
            self.skipped += 1
        elif self._policy == "dead_letter":
            self._write_letter(shown, problem, trace)
        else:
            self._report(f"{problem}\nitem: {shown}\n{trace}")

    def _write_letter(self, shown: str, problem: str, trace: str) -> None:
        letter = {
            "task": self._task,
            "replica": self._replica,
            "item": shown,
            "error": problem,
            "traceback": trace,
        }
        path = Path(self._dead_letters) / f"{self._task}-{self._replica}.jsonl"
        try:
            if self._letters is None:
                self._letters = PartFile.append_to(path)
            self._letters.write_line(json.dumps(letter).encode())
        except OSError as full:
            self._report(
                f"{problem}\nitem: {shown}\nand its dead letter could not be written to {path}: {full}"
            )
            return
        self.dead_lettered += 1

    def _report(self, problem: str) -> None:
        self._fail({"failed": {"task": self._task, "replica": self._replica, "problem": problem}})


def _shown(item: Any) -> str:
    try:
        text = repr(item)
    except Exception as problem:  # noqa: BLE001 - users' code may raise anything
        text = f"<{type(item).__name__} whose repr raised {problem!r}>"
    return text if len(text) <= _REPR_LIMIT else text[:_REPR_LIMIT] + f"... ({len(text)} characters)"
