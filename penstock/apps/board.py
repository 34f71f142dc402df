"""A sink that adds up counts and shows them in a file."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


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
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_name(self._path.name + ".new")
            beside.write_text(json.dumps(dict(self.totals.most_common()), indent=1) + "\n")
            beside.replace(self._path)  # readers see the old totals or the new ones, never half of them

    def close(self) -> None:
        self.flush()


def read_board(path: str | Path) -> dict[str, Any]:
    """What a board wrote."""
    found: dict[str, Any] = json.loads(Path(path).read_text())
    return found
