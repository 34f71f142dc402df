"""A count by key in Bytewax, in two processes, with a snapshot of the state each second.

python -m peer_programs.counts_in_bytewax, then a turn for each line of the standard input.
"""

import json
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from .in_bytewax import PROCESSES, ArrivalsPart, FirstProcess, InPlace, free_addresses
from .items import Asked, Item, turns

KEYS = 1_000
STEP = 7919
EACH = timedelta(seconds=1)


def keyed(item: Item) -> tuple[str, Item]:
    """The keys are those of Penstock's items."""
    return f"key {item[1] * STEP % KEYS}", item


def one_more(seen: int | None, item: Item) -> tuple[int, Item]:
    """Counts, and passes the item on."""
    return (seen or 0) + 1, item


def counts(turn: Asked) -> Dataflow:
    """source -> count by key -> the sink of the process that has the key."""
    flow = Dataflow("counts")
    items = op.map("key", op.input("items", flow, FirstProcess(turn)), keyed)
    op.output("sink", op.stateful_map("count", items, one_more), InPlace(ArrivalsPart, turn))
    return flow


def cluster(turn: Asked) -> None:
    """Two processes that run a turn, until both have ended."""
    with tempfile.TemporaryDirectory(prefix="penstock-peer-") as snapshots:
        init_db_dir(Path(snapshots), PROCESSES)
        said = [json.dumps(part) for part in (turn, free_addresses(), snapshots)]
        command = [sys.executable, "-m", "peer_programs.counts_in_bytewax", *said]
        children = [subprocess.Popen([*command, str(process)]) for process in range(PROCESSES)]
        codes = [child.wait() for child in children]
    if any(codes):
        raise RuntimeError("a process of Bytewax failed")


def main(arguments: list[str]) -> None:
    """As a contestant, or as one of its processes."""
    if arguments:
        turn, addresses, snapshots, number = map(json.loads, arguments)
        recovery = RecoveryConfig(Path(snapshots))
        cluster_main(counts(Asked(*turn)), addresses, number, epoch_interval=EACH, recovery_config=recovery)
        return
    for turn in turns():
        cluster(turn)


if __name__ == "__main__":
    main(sys.argv[1:])
