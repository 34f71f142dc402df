"""A sink that hands the items back to the test that ran the flow."""

import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from penstock.io.protocol import SinkContext

MARKER = ".penstock-collector"


@dataclass
class Collector:
    """Appends pickled items to a file per replica in a private directory; `items()` reads them back."""

    directory: Path | str | None = None
    _descriptor: int | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if self.directory is None:
            self.directory = tempfile.mkdtemp(prefix="penstock-collector-")
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(self._path.iterdir()) and not (self._path / MARKER).exists():
            raise ValueError(
                f"{self._path} is not empty and not a collector's directory; give an empty or a new one"
            )
        (self._path / MARKER).touch()

    def open(self, context: SinkContext) -> None:
        path = self._path / f"{context.task}-{context.replica:05d}.pickle"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, item: Any) -> None:
        assert self._descriptor is not None, "a sink is opened before it is written to"
        pickled = pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL)
        os.write(self._descriptor, len(pickled).to_bytes(8, "big") + pickled)

    def records(self) -> Iterator[tuple[int, int, Any]]:
        """`(replica, sequence in it, item)` of everything collected so far, replica by replica."""
        for path in sorted(self._path.glob("*.pickle")):
            replica = int(path.stem.rsplit("-", 1)[1])
            content = path.read_bytes()
            at = sequence = 0
            while at + 8 <= len(content):
                end = at + 8 + int.from_bytes(content[at : at + 8], "big")
                if end > len(content):
                    break  # being written right now
                yield replica, sequence, pickle.loads(content[at + 8 : end])
                at, sequence = end, sequence + 1

    def items(self) -> list[Any]:
        """Everything collected so far; the order holds within a replica only."""
        return [item for _, _, item in self.records()]

    def clear(self) -> None:
        """Forget what was collected."""
        for path in self._path.glob("*.pickle"):
            path.unlink()

    def close(self) -> None:
        """In a worker: close the file. In the driver: remove the directory, if it is a collector's."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        elif (self._path / MARKER).exists():
            shutil.rmtree(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _path(self) -> Path:
        assert self.directory is not None
        return Path(self.directory)
