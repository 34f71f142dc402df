"""Pathway in one process: a hop is a Python function that is applied to a column.

python -m peer_programs.in_pathway, then a turn for each line of the standard input.
"""

import subprocess
import sys
from typing import Any

import pathway

from .items import Arrivals, Asked, Paced, asked, said, turns

COMMIT_MS = 1


class Numbered(pathway.Schema):
    """An item, by columns."""

    index: int
    due_ns: int
    lag_ns: int
    payload: bytes


class Items(pathway.io.python.ConnectorSubject):
    """Each is committed by itself, so that none waits for others."""

    def __init__(self, turn: Asked) -> None:
        super().__init__()
        self._turn = turn

    def run(self) -> None:
        for _, index, due_ns, lag_ns, payload in Paced(self._turn).one_by_one():
            self.next(index=index, due_ns=due_ns, lag_ns=lag_ns, payload=payload)
            self.commit()


def same(payload: bytes) -> bytes:
    """The trivial task."""
    return payload


def run(turn: Asked) -> None:
    """source -> so many hops, the last of them into the sink."""
    arrivals = Arrivals(turn.directory)

    def arrived(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: ARG001, FBT001
        arrivals.write((0, row["index"], row["due_ns"], row["lag_ns"], row["payload"]))

    items = pathway.io.python.read(Items(turn), schema=Numbered, autocommit_duration_ms=COMMIT_MS)
    for _ in range(turn.hops - 1):
        items = items.with_columns(payload=pathway.apply(same, pathway.this.payload))
    pathway.io.subscribe(items, on_change=arrived)
    pathway.run(monitoring_level=pathway.MonitoringLevel.NONE)
    arrivals.close()


def main(arguments: list[str]) -> None:
    """As a contestant, or as the process that runs one turn: a graph belongs to a process."""
    if arguments:
        run(asked(arguments[0]))
        return
    for turn in turns():
        subprocess.run([sys.executable, "-m", "peer_programs.in_pathway", said(turn)], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
