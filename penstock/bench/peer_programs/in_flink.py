"""PyFlink in thread mode: Python runs inside the JVM; a hop is a channel between two tasks of it.

python -m peer_programs.in_flink, then a turn for each line of the standard input.
"""

import os
import sys
from collections.abc import Iterator

from pyflink.common import Configuration, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import FlatMapFunction, MapFunction, RuntimeContext

from .items import Arrivals, Asked, Item, Paced, turns

SETTINGS = {
    "python.execution-mode": "thread",
    "execution.buffer-timeout.interval": "0 ms",
    "parallelism.default": "1",
    "pipeline.operator-chaining.enabled": "false",
    "python.executable": sys.executable,
}


class Items(FlatMapFunction):
    """PyFlink has no sources in Python: this one makes all of one element, and sleeps in between."""

    def __init__(self, turn: Asked) -> None:
        self._turn = turn

    def flat_map(self, value: int) -> Iterator[Item]:  # noqa: ARG002
        yield from Paced(self._turn).one_by_one()


class Same(MapFunction):
    """The trivial task."""

    def map(self, value: Item) -> Item:
        return value


class Sink(MapFunction):
    """There are none in Python either."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._arrivals: Arrivals | None = None

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: ARG002
        self._arrivals = Arrivals(self._directory)

    def map(self, value: Item) -> int:
        assert self._arrivals is not None, "opened first"
        self._arrivals.write(value)
        return 0

    def close(self) -> None:
        if self._arrivals is not None:
            self._arrivals.close()


def run(turn: Asked) -> None:
    """source -> so many hops, the last of them into the sink."""
    conf = Configuration()
    for key, value in SETTINGS.items():
        conf.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(conf)
    pickled = Types.PICKLED_BYTE_ARRAY()
    items = environment.from_collection([0], Types.INT()).flat_map(Items(turn), pickled)
    for _ in range(turn.hops - 1):
        items = items.rebalance().map(Same(), pickled)
    items.rebalance().map(Sink(turn.directory), Types.INT())
    environment.execute("peers")


if __name__ == "__main__":
    # The interpreter inside the JVM knows nothing of this environment.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    for turn in turns():
        run(turn)
