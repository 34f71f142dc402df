"""What happens to an item that a task cannot process: fail, skip or dead letter, as its `on_error` says."""

import traceback
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.flow.graph import OnError, Task
from penstock.io.letters import Letter, letters_path, pickled
from penstock.io.part_file import PartFile
from penstock.io.protocol import DeliveryError
from penstock.sizes import format_size
from penstock.wire.reports import Failure
from penstock.worker.context import Context

_REPR_LIMIT = 2000


class Failures:
    """The error policy of one worker."""

    def __init__(
        self, task: Task, context: Context, dead_letters: str, fail: Callable[[dict[str, Any]], None]
    ) -> None:
        self.skipped = 0
        self.dead_lettered = 0
        self._task = task
        self._context = context
        self._dead_letters = dead_letters
        self._letters: PartFile | None = None
        self._fail = fail

    def item_failed(self, item: Any, problem: BaseException) -> None:
        """An item that raised."""
        if isinstance(problem, DeliveryError):  # of items that were taken before, and are not safe
            self.broken("delivering what was written", problem)
            return
        words = f"{type(problem).__name__}: {problem}"
        if isinstance(problem, MemoryError) and self._task.memory_bytes is not None:
            limit = format_size(self._task.memory_bytes)
            words = f"{words.removesuffix(': ')}, far more than its memory={limit}"
        self._handle(item, words, problem, self._task.on_error)

    def batch_failed(self, items: list[Any], problem: BaseException) -> None:
        """A batch raised, and an error ends the flow; nothing tells which of its items it was."""
        trace = "".join(traceback.format_exception(problem))
        words = f"{type(problem).__name__}: {problem}"
        self._report(f"{words}\nbatch of {len(items)} items: {_shown(items)}\n{trace}")

    def result_failed(self, result: Any, problem: BaseException) -> None:
        """A result that could not be shipped: it is no item that could come again."""
        words = f"{type(problem).__name__}: {problem}"
        self._handle(result, words, problem, self._task.on_error, is_item=False)

    def unread(self, data: bytes, problem: BaseException) -> None:
        """An item that its codec could not read: what came is known, and cannot come again as an item."""
        words = f"{type(problem).__name__}: {problem}"
        self._handle(data, words, problem, self._task.on_error, is_whole=False)

    def item_killed(self, item: Any, words: str, policy: OnError) -> None:
        """An item that ended the worker process again and again, or is known to end it."""
        self._handle(item, words, None, policy)

    def broken(self, where: str, problem: BaseException) -> None:
        """An error outside any item (open, timer, flush, close, a source): always fatal."""
        trace = "".join(traceback.format_exception(problem))
        self._report(f"{where} raised {type(problem).__name__}: {problem}\n{trace}")

    def out_of_reach(self, what: str, root: str, problem: OSError) -> None:
        """Files of the checkpoint: no error of the task, and perhaps over a moment later."""
        self._report(f"{what} failed, in the checkpoint {root}: {problem}", may_pass=True)

    def flush(self) -> None:
        """A batch is about to be committed: dead letters of its items are on the disk first."""
        if self._letters is not None:
            self._letters.sync()

    def close(self) -> None:
        """Release the file of the letters."""
        if self._letters is not None:
            self._letters.close()
            self._letters = None

    def _handle(
        self,
        item: Any,
        words: str,
        problem: BaseException | None,
        policy: OnError,
        *,
        is_item: bool = True,
        is_whole: bool = True,
    ) -> None:
        if policy == "skip":
            self.skipped += 1
            return
        trace = "" if problem is None else "".join(traceback.format_exception(problem))
        if policy == "fail":
            self._report(f"{words}\nitem: {_shown(item)}\n{trace}")
            return
        context = self._context
        letter = Letter(
            task=context.task,
            replica=context.replica,
            item=_shown(item),
            error=words,
            traceback=trace,
            input=context.input if is_item else None,
            id=context.item_id if is_item else None,
            pickle=pickled(item) if is_item and is_whole else None,
            metadata=context.metadata if is_item else None,
        )
        self._write(letter)

    def _write(self, letter: Letter) -> None:
        path = letters_path(self._dead_letters, letter.task, letter.replica)
        try:
            if self._letters is None:
                self._letters = PartFile.append_to(path)
            self._letters.write_line(msgspec.json.encode(letter))
        except OSError as full:
            self._report(
                f"{letter.error}\nitem: {letter.item}\n"
                f"and its dead letter could not be written to {path}: {full}"
            )
            return
        self.dead_lettered += 1

    def _report(self, problem: str, *, may_pass: bool = False) -> None:
        context = self._context
        failure = Failure(context.task, context.replica, problem, may_pass)
        self._fail({"failed": msgspec.to_builtins(failure)})


def _shown(item: Any) -> str:
    try:
        text = repr(item)
    except Exception as problem:  # noqa: BLE001 - users' code may raise anything
        text = f"<{type(item).__name__} whose repr raised {problem!r}>"
    return text if len(text) <= _REPR_LIMIT else text[:_REPR_LIMIT] + f"... ({len(text)} characters)"
