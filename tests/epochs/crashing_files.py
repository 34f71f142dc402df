"""File systems elsewhere, in memory: what a step has done is done, and its caller may end in the middle."""

import itertools
from collections.abc import Callable
from typing import Literal, TypeVar

from penstock.epochs.storage import UNFINISHED
from tests.epochs.crashing_disk import Crash

Answer = TypeVar("Answer")
Cut = Literal["before", "half", "after"]
CUTS: tuple[Cut, ...] = ("before", "half", "after")


class CrashingFiles:
    """`RemoteFiles` that renames, as `ExclusiveRename.java`.

    `before` is called ahead of every step, with its number.
    With `crash_at` the caller ends at that step: before it, after it, or (`half`) in the middle of what is
    written; anything else is done or not.
    """

    def __init__(self, before: Callable[[int], None] = lambda number: None) -> None:
        self.before = before
        self.calls = 0
        self.crash_at = 0
        self.cut: Cut = "before"
        self.files: dict[str, bytes] = {}
        self._numbers = itertools.count()

    def names(self, directory: str) -> list[str]:
        return self._call(
            lambda: [
                name.removeprefix(f"{directory}/") for name in self.files if name.startswith(f"{directory}/")
            ]
        )

    def read(self, name: str) -> bytes | None:
        return self._call(lambda: self.files.get(name))

    def create(self, name: str, content: bytes) -> bool:
        temporary = f"{name.rpartition('/')[0]}/{UNFINISHED}{next(self._numbers)}"
        self.write(temporary, content)
        if self.rename(temporary, name):
            return True
        self.delete(temporary)
        return False

    def write(self, name: str, content: bytes) -> None:
        def write() -> None:
            self.files[name] = content

        def write_half() -> None:
            self.files[name] = content[: len(content) // 2]

        self._call(write, write_half)

    def rename(self, name: str, target: str) -> bool:
        def rename() -> bool:
            if name not in self.files:
                raise FileNotFoundError(name)
            if self.takes(target):
                return False
            self.files[target] = self.files.pop(name)
            return True

        return self._call(rename)

    def takes(self, target: str) -> bool:
        """Whether a name is taken."""
        return target in self.files

    def delete(self, name: str) -> None:
        self._call(lambda: self.files.pop(name, None))

    def _call(self, action: Callable[[], Answer], half: Callable[[], object] = lambda: None) -> Answer:
        self.calls += 1
        self.before(self.calls)
        if self.calls != self.crash_at:
            return action()
        if self.cut == "after":
            action()
        if self.cut == "half":
            half()
        raise Crash


class PuttingFiles(CrashingFiles):
    """One that makes a file in one step, as `ConditionalPut.java`."""

    def create(self, name: str, content: bytes) -> bool:
        def put() -> bool:
            if self.takes(name):
                return False
            self.files[name] = content
            return True

        return self._call(put)
