"""A sink that adds up counts and shows them in a file."""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.io.part_file import make_directory, sync_directory


class Board:
    """Adds up counts; at every commit and at the end the totals are written as JSON to `path`.

    Items are dicts of counts, or `counts(item)` makes such a dict of them.
    The totals begin at zero with every run, and with every worker: they are something to look at, not state.
    """

    def __init__(
        self, path: str | Path | None = None, counts: Callable[[Any], Mapping[str, int]] = dict
    ) -> None:
        self._path = None if path is None else Path(path).absolute()
        self._counts = counts
        self.totals: Counter[str] = Counter()

    def write(self, item: Any) -> None:
        self.totals.update(self._counts(item))

    def flush(self) -> None:
        if self._path is not None:
            make_directory(self._path.parent)
            beside = self._path.with_name(self._path.name + ".new")
            with beside.open("w") as file:
                file.write(json.dumps(dict(self.totals.most_common()), indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())  # a commit must survive a crash of the host
            beside.replace(self._path)  # readers see the old totals or the new ones, never half of them
            sync_directory(self._path.parent)

    def close(self) -> None:
        self.flush()


def read_board(path: str | Path) -> dict[str, Any]:
    """What a board wrote."""
    found: dict[str, Any] = json.loads(Path(path).read_text())
    return found
