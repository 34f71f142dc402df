"""A sink that keeps labelled tweets in a table of an SQLite database."""

import sqlite3
from pathlib import Path
from typing import Any

_TABLE = (
    "CREATE TABLE IF NOT EXISTS tweets (number INTEGER PRIMARY KEY, labels TEXT NOT NULL, text TEXT NOT NULL)"
)
# A tweet that comes again after a failure is there already.
_INSERT = "INSERT OR IGNORE INTO tweets VALUES (?, ?, ?)"


class Store:
    """One row per tweet: number, labels joined by slashes, text. A tweet that comes twice is kept once."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(Path(path).absolute())
        self._database: sqlite3.Connection | None = None

    def open(self, context: Any) -> None:  # noqa: ARG002 - there is one store
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        # Every row is a transaction: it survives the death of this process, which is all a sink must promise.
        self._database = sqlite3.connect(self._path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(_TABLE)

    def write(self, item: Any) -> None:
        assert self._database is not None, "a sink is opened before it is written to"
        self._database.execute(_INSERT, (item.number, "/".join(item.labels), item.text))

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def stored(path: str | Path) -> dict[int, str]:
    """The labels of every tweet that is kept, by its number."""
    database = sqlite3.connect(path)
    try:
        return dict(database.execute("SELECT number, labels FROM tweets"))
    finally:
        database.close()
