"""The rows by name; imported only when asked for, because all need Spark."""

from collections.abc import Sequence
from itertools import chain

from penstock.faults import (
    rows_changes,
    rows_checkpoint,
    rows_control,
    rows_driver,
    rows_executors,
    rows_kafka,
    rows_load,
    rows_network,
    rows_state,
    rows_users,
    rows_workers,
)
from penstock.faults.row import Row, UnknownRowError

MODULES = (
    rows_executors,
    rows_workers,
    rows_driver,
    rows_network,
    rows_users,
    rows_load,
    rows_changes,
    rows_control,
    rows_checkpoint,
    rows_state,
    rows_kafka,
)
ROWS: dict[str, Row] = {row.name: row for row in chain.from_iterable(module.ROWS for module in MODULES)}


def find(names: Sequence[str]) -> list[Row]:
    """The rows of these names, all if there are none; in the order of the table."""
    for name in names:
        if name not in ROWS:
            raise UnknownRowError(
                f"no row of the fault table is called {name!r}; there are {', '.join(ROWS)}"
            )
    return [row for row in ROWS.values() if not names or row.name in names]
