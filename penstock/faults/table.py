"""The rows by name; imported only when asked for, because all need Spark."""

from collections.abc import Sequence
from itertools import chain

from penstock.faults import rows_executors, rows_workers
from penstock.faults.row import Row, UnknownRowError

ROWS: dict[str, Row] = {row.name: row for row in chain(rows_workers.ROWS, rows_executors.ROWS)}


def find(names: Sequence[str]) -> list[Row]:
    """The rows of these names, all if there are none; in the order of the table."""
    for name in names:
        if name not in ROWS:
            raise UnknownRowError(f"no row of the fault table is called {name!r}; there are {', '.join(ROWS)}")
    return [row for row in ROWS.values() if not names or row.name in names]
