"""A sink that keeps labelled tweets in a table of an SQLite database."""

import os
import sqlite3
from pathlib import Path
from typing import Any

from penstock.io.part_file import make_directory, sync_directory

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
        self._unsynced = True
        self._named = False

    def open(self, context: Any) -> None:  # noqa: ARG002 - there is one store
        make_directory(Path(self._path).parent)
        # Every row is a transaction: it survives the death of this process as soon as it is written.
        self._database = sqlite3.connect(self._path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        # SQLite syncs only when it moves rows from its log into the database; the log is synced by `flush`.
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute(_TABLE)
        self._unsynced, self._named = True, False  # what a killed process left is not on the disk yet

    def write(self, item: Any) -> None:
        assert self._database is not None, "a sink is opened before it is written to"
        self._database.execute(_INSERT, (item.number, "/".join(item.labels), item.text))
        self._unsynced = True

    def flush(self) -> None:
        """A batch is about to be committed: its rows must survive a crash of the host, too."""
        if self._database is None or not self._unsynced:
            return
        with open(f"{self._path}-wal", "rb") as log:  # noqa: PTH123 - beside the database, by SQLite's rule
            os.fdatasync(log.fileno())
        if not self._named:
            sync_directory(Path(self._path).parent)
        self._unsynced, self._named = False, True

    def close(self) -> None:
        if self._database is not None:
            self.flush()
            self._database.close()
            self._database = None


def stored(path: str | Path) -> dict[int, str]:
    """The labels of every tweet that is kept, by its number."""
    database = sqlite3.connect(path)
    try:
        return dict(database.execute("SELECT number, labels FROM tweets"))
    finally:
        database.close()
