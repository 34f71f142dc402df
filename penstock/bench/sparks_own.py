"""Plain real-time queries over Spark's own shuffle, in a process of their own: a Spark has one shuffle.

It is asked for turns on its standard input, and puts the rows of each into a file.
"""

import os
import sys
from pathlib import Path

import msgspec
import numpy
from pyspark.sql import SparkSession

from penstock.bench.baselines import Rows, bench_session, jvm_hop, jvm_hops, real_time
from penstock.bench.own_session import ANSWER, OwnSession
from penstock.flow.spark_conf import SHUFFLE, SPARKS

SLOTS = 8
ROWS = Path("rows.npy")
STARTS_WITHIN_S = 120.0


class Turn(msgspec.Struct, frozen=True):
    """Rows a second, for how long, through one shuffle or two with an operator of `width` between them."""

    rate_per_s: float
    seconds: float
    trigger: str = "1 minute"
    hops: int = 1
    width: int = 1


class SparksOwn(OwnSession):
    """Whoever asks it; it stays from turn to turn, and has nothing to do in between."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        super().__init__(
            [sys.executable, "-P", "-m", "penstock.bench.sparks_own"],
            environment=os.environ,
            directory=directory,
        )

    def take(self, turn: Turn) -> Rows:
        """What arrived in a turn."""
        self.ask(msgspec.json.encode(turn).decode(), turn.seconds + STARTS_WITHIN_S)
        return Rows(*numpy.load(self._directory / ROWS))


def ran(spark: SparkSession, turn: Turn) -> Rows:
    """A turn, over whatever shuffle the session has."""
    shape = jvm_hop(turn.width) if turn.hops == 1 else jvm_hops(turn.width)
    return real_time(spark, shape, turn.rate_per_s, turn.seconds, turn.trigger)


def main() -> None:
    """Answer until nobody asks."""
    spark = bench_session(SLOTS, {SHUFFLE: SPARKS})
    for line in sys.stdin:
        rows = ran(spark, msgspec.json.decode(line, type=Turn))
        numpy.save(ROWS, numpy.stack([rows.seq, rows.due_ns, rows.arrived_ns]))
        print(ANSWER, flush=True)


if __name__ == "__main__":
    main()
