"""Bytewax in two processes: each hop takes every item from one to the other.

python -m peer_programs.in_bytewax, then a turn for each line of the standard input.
"""

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from .items import Arrivals, Asked, Item, Paced, turns

PROCESSES = 2
PROBES = 16


class PacedPart(StatelessSourcePartition):
    """Asleep until the next item is due, as Bytewax wants it."""

    def __init__(self, turn: Asked) -> None:
        self._items = Paced(turn)

    def next_batch(self) -> list[Item]:
        if self._items.is_over:
            raise StopIteration
        return self._items.due()

    def next_awake(self) -> datetime:
        return datetime.now(UTC) + timedelta(microseconds=max(0, self._items.wait_ns) / 1000)


class NoPart(StatelessSourcePartition):
    """A process that reads nothing."""

    def next_batch(self) -> list[Item]:
        raise StopIteration


class FirstProcess(DynamicSource):
    """Items come from the first process alone."""

    def __init__(self, turn: Asked) -> None:
        self._turn = turn

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSourcePartition:  # noqa: ARG002
        return PacedPart(self._turn) if worker_index == 0 else NoPart()


class Passed(StatefulBatchLogic):
    """The trivial task: Bytewax takes an item to the process that has the state of its key."""

    def on_batch(self, values: list[Item]) -> tuple[list[Item], bool]:
        return values, StatefulBatchLogic.RETAIN

    def snapshot(self) -> None:
        return None


class ArrivalsPart(StatelessSinkPartition):
    """What arrives in a process."""

    def __init__(self, turn: Asked, process: int) -> None:
        self._arrivals = Arrivals(turn.directory, process)

    def write_batch(self, items: list[tuple[str, Item]]) -> None:
        for _, item in items:
            self._arrivals.write(item)

    def close(self) -> None:
        self._arrivals.close()


class PlacesPart(StatelessSinkPartition):
    """Which keys a process has."""

    def __init__(self, turn: Asked, process: int) -> None:
        self._file = Path(turn.directory) / str(process)

    def write_batch(self, items: list[tuple[str, Item]]) -> None:
        self._file.write_text(items[0][0])


class InPlace(DynamicSink):
    """Nothing crosses before it: every process has a part of its own."""

    def __init__(self, part: Callable[[Asked, int], StatelessSinkPartition], turn: Asked) -> None:
        self._part, self._turn = part, turn

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSinkPartition:  # noqa: ARG002
        return self._part(self._turn, worker_index)


def hops(turn: Asked, keys: list[str]) -> Dataflow:
    """source -> task in the other process, so many times; the sink is beside the last."""
    flow = Dataflow("peers")
    items = op.input("items", flow, FirstProcess(turn))
    keyed = op.map("to-1", items, lambda item: (keys[1], item))
    keyed = op.stateful_batch("hop-1", keyed, lambda _: Passed())
    for hop in range(2, turn.hops + 1):
        keyed = op.map(f"to-{hop}", keyed, partial(keyed_anew, keys[hop % PROCESSES]))
        keyed = op.stateful_batch(f"hop-{hop}", keyed, lambda _: Passed())
    op.output("sink", keyed, InPlace(ArrivalsPart, turn))
    return flow


def keyed_anew(key: str, pair: tuple[str, Item]) -> tuple[str, Item]:
    """The same item for another process."""
    return key, pair[1]


def places(turn: Asked) -> Dataflow:
    """An item for each of many keys: in whichever process Bytewax keeps it, it is noted."""
    flow = Dataflow("places")
    items = op.input("items", flow, FirstProcess(turn))
    keyed = op.map("key", items, lambda item: (f"key-{item[1]}", item))
    op.output("sink", op.stateful_batch("place", keyed, lambda _: Passed()), InPlace(PlacesPart, turn))
    return flow


def key_of_each_process() -> list[str]:
    """Where a key belongs is Bytewax's secret, but it stays the same."""
    with tempfile.TemporaryDirectory(prefix="penstock-peer-") as directory:
        cluster(Asked(1, PROBES, 1, directory), [])
        return [(Path(directory) / str(process)).read_text() for process in range(PROCESSES)]


def cluster(turn: Asked, keys: list[str]) -> None:
    """Two processes that run a turn, until both have ended."""
    said = [json.dumps(part) for part in (turn, keys, free_addresses())]
    command = [sys.executable, "-m", "peer_programs.in_bytewax", *said]
    children = [subprocess.Popen([*command, str(process)]) for process in range(PROCESSES)]
    codes = [child.wait() for child in children]
    if any(codes):
        raise RuntimeError("a process of Bytewax failed")


def free_addresses() -> list[str]:
    """Nobody else listens there just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(PROCESSES)]
    addresses = [f"127.0.0.1:{found.getsockname()[1]}" for found in sockets]
    for found in sockets:
        found.close()
    return addresses


def process(turn: Asked, keys: list[str], addresses: list[str], number: int) -> None:
    """One of the two; without keys it looks for them."""
    cluster_main(hops(turn, keys) if keys else places(turn), addresses, number)


def main(arguments: list[str]) -> None:
    """As a contestant, or as one of its processes."""
    if arguments:
        turn, keys, addresses, number = map(json.loads, arguments)
        process(Asked(*turn), keys, addresses, number)
        return
    keys = key_of_each_process()
    for turn in turns():
        cluster(turn, keys)


if __name__ == "__main__":
    main(sys.argv[1:])
