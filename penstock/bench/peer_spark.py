"""Penstock and PySpark's micro-batches as contestants of `penstock bench peers`.

Each is a process with a Spark of its own, which is asked for turns like the programs of `peer_programs`.
"""

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.bench.baselines import Rows, arrow_hop, bench_session, micro_batch
from penstock.bench.peer_programs.items import Asked, turns
from penstock.bench.throughput import same
from penstock.spark.job import Job
from penstock.testing import Ledger, stamped

if TYPE_CHECKING:
    from collections.abc import Callable

SLOTS: Final = 4
BATCHED: Final = "20 ms"
MICRO_OFFERED_PER_S: Final = 200_000.0
"""Micro-batches grow with what waits: much more, and all of a turn would be one batch."""
_STARTS_WITHIN_S: Final = 60.0
_LOOK_S: Final = 0.05

OWN, OWN_BATCHED, MICRO = "penstock", "penstock_batched", "spark_micro_batches"
SETTINGS: Final = {
    OWN: "local mode; items are shipped at once; a process for each task; no commit within a turn",
    OWN_BATCHED: f"the same with envelopes of {BATCHED}; for the highest rate alone",
    MICRO: "one batch right after the other; a hop is repartition(1) and mapInArrow, the sink is in the JVM;"
    f" for the highest rate {MICRO_OFFERED_PER_S:,.0f} items/s are offered",
}


def own_turn(turn: Asked, lifetime: str = "0 ms") -> None:
    """source -> so many hops, the last of them into the sink."""
    ledger = Ledger(turn.directory)
    flow = penstock.Flow("peers")
    # With more than it can take it ends because it is stopped.
    seconds = None if turn.flat_out else turn.seconds
    stream = flow.source(penstock.paced(stamped, turn.rate_per_s, seconds=seconds), name="items")
    for hop in range(1, turn.hops):
        stream = stream.batched(lifetime).map(same, name=f"hop-{hop}")
    stream.batched(lifetime).sink(ledger, name="ledger")
    ran(penstock.run(flow), ledger, turn)


def ran(job: Job, ledger: Ledger, turn: Asked) -> None:
    """Until the turn is over; what the flow failed with is raised."""
    if turn.flat_out:
        _await_first(ledger)
        time.sleep(turn.seconds)
        job.stop()
    else:
        job.await_termination(turn.seconds + _STARTS_WITHIN_S)
    problem = job.exception()
    if problem is not None:
        raise problem


def _await_first(ledger: Ledger) -> None:
    deadline_s = time.monotonic() + _STARTS_WITHIN_S
    while not any(file.stat().st_size for file in ledger.files()) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)


def micro_turn(spark: SparkSession, turn: Asked) -> None:
    """What the JVM's sink saw is written down in the end; that it has begun is told before."""

    def shape(rows: DataFrame) -> DataFrame:
        for _ in range(turn.hops):
            rows = arrow_hop(1)(rows)
        return rows

    rate_per_s = MICRO_OFFERED_PER_S if turn.flat_out else turn.rate_per_s
    begun = partial((Path(turn.directory) / "begun").write_text, "yes")
    rows = micro_batch(spark, shape, rate_per_s, turn.seconds, begun)
    (Path(turn.directory) / "replica-00000").write_bytes(recorded(rows))


def recorded(rows: Rows) -> bytes:
    """As a ledger's file; the source makes up rows when it is asked, so it is never late."""
    zeros = numpy.zeros_like(rows.seq)
    return numpy.stack([zeros, rows.seq, rows.due_ns, rows.arrived_ns, zeros], axis=1).astype("<i8").tobytes()


def main(name: str) -> None:
    """Answer until nobody asks."""
    spark = bench_session(SLOTS)
    runs: dict[str, Callable[[Asked], None]] = {
        OWN: own_turn,
        OWN_BATCHED: partial(own_turn, lifetime=BATCHED),
        MICRO: partial(micro_turn, spark),
    }
    for turn in turns():
        runs[name](turn)


if __name__ == "__main__":
    main(sys.argv[1])
