"""A disk that forgets in a crash what was not synced, and crashes at a chosen call."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

Loss = Literal["nothing", "everything", "contents", "half", "names"]
LOSSES: tuple[Loss, ...] = ("nothing", "everything", "contents", "half", "names")


class Crash(BaseException):
    """The process is no more."""


class CrashingDisk:
    """`Disk` in memory. `before` is called ahead of every call, with its number."""

    def __init__(self, before: Callable[[int], None] = lambda number: None) -> None:
        self.before = before
        self.calls = 0
        self._contents: dict[int, bytes] = {}
        self._synced: dict[int, bytes] = {}
        self._names: dict[Path, int] = {}
        self._durable: dict[Path, int] = {}
        self._directories: set[Path] = set()

    def crash(self, loss: Loss) -> None:
        """Come up again: nothing is lost (only the process died), or of what was not synced all or a part."""
        if loss in ("everything", "names"):
            self._names = dict(self._durable)
        if loss in ("everything", "contents", "half"):
            self._contents = {
                inode: self._synced.get(inode, content[: len(content) // 2] if loss == "half" else b"")
                for inode, content in self._contents.items()
            }
        self.before = lambda number: None

    def make_directory(self, path: Path) -> None:
        self._call()
        self._directories.add(path)

    def names(self, path: Path) -> list[str]:
        self._call()
        if path not in self._directories:
            raise FileNotFoundError(path)
        return [name.name for name in self._names if name.parent == path]

    def read(self, path: Path) -> bytes:
        self._call()
        return self._contents[self._inode(path)]

    def write_new(self, path: Path, content: bytes) -> None:
        self._call()
        if path in self._names:
            raise FileExistsError(path)
        inode = len(self._contents)
        self._names[path] = inode
        self._contents[inode] = content

    def sync(self, path: Path) -> None:
        self._call()
        if path in self._names:
            inode = self._names[path]
            self._synced[inode] = self._contents[inode]
        else:
            kept = {name: inode for name, inode in self._durable.items() if name.parent != path}
            self._durable = kept | {name: i for name, i in self._names.items() if name.parent == path}

    def link(self, source: Path, target: Path) -> None:
        self._call()
        if target in self._names:
            raise FileExistsError(target)
        self._names[target] = self._inode(source)

    def unlink(self, path: Path) -> None:
        self._call()
        self._inode(path)
        del self._names[path]

    def _inode(self, path: Path) -> int:
        if path not in self._names:
            raise FileNotFoundError(path)
        return self._names[path]

    def _call(self) -> None:
        self.calls += 1
        self.before(self.calls)
