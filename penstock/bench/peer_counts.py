"""Penstock and PySpark's micro-batches as contestants of part `peers` of bench `state`: a count by key.

Each is a process with a Spark of its own, which is asked for turns like the programs of `peer_programs`.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import penstock
from penstock.bench.baselines import bench_session, micro_batch
from penstock.bench.keyed import Counted, one_of
from penstock.bench.peer_programs.items import Asked, turns
from penstock.bench.peer_spark import (
    BATCHED,
    MICRO,
    MICRO_OFFERED_PER_S,
    OWN,
    OWN_BATCHED,
    ran,
    recorded,
)
from penstock.testing import Ledger, stamped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SLOTS: Final = 4
PARTITIONS: Final = 2
KEYS: Final = 1_000
"""So few because Spark calls Python once for each key of a batch: some thousand times a second at most."""
ROCKS_DB: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.shuffle.partitions": str(PARTITIONS),
}
SETTINGS: Final = {
    OWN: "local mode; items are shipped at once; state declared, a commit by an epoch mark each second",
    OWN_BATCHED: f"the same with envelopes of {BATCHED}; for the highest rate alone",
    MICRO: "one batch right after the other; applyInPandasWithState in 2 partitions, RocksDB, a commit each"
    f" batch; the sink is in the JVM; for the highest rate {MICRO_OFFERED_PER_S:,.0f} items/s are offered",
}


def own_turn(turn: Asked, lifetime: str = "0 ms") -> None:
    """source -> count by key -> sink, with commits."""
    ledger = Ledger(turn.directory)
    flow = penstock.Flow("counts")
    seconds = None if turn.flat_out else turn.seconds
    items = flow.source(penstock.paced(stamped, turn.rate_per_s, seconds=seconds), name="items")
    counts = items.batched(lifetime).by_key(one_of(KEYS)).task(Counted, name="count")
    counts.batched(lifetime).sink(ledger, name="ledger")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
        ran(penstock.run(flow, checkpoint=place, commit="1 s", policy=None), ledger, turn)


def micro_turn(spark: SparkSession, turn: Asked) -> None:
    """What the JVM's sink saw is written down in the end; that it has begun is told before."""
    for name, value in ROCKS_DB.items():
        spark.conf.set(name, value)
    rate_per_s = MICRO_OFFERED_PER_S if turn.flat_out else turn.rate_per_s
    begun = partial((Path(turn.directory) / "begun").write_text, "yes")
    rows = micro_batch(spark, counts_by_key, rate_per_s, turn.seconds, begun)
    (Path(turn.directory) / "replica-00000").write_bytes(recorded(rows))


def counts_by_key(rows: DataFrame) -> DataFrame:
    """The keys are those of Penstock's items."""
    keyed = rows.withColumn("key", expr(f"concat('key ', seq * 7919 % {KEYS})"))
    return keyed.groupBy("key").applyInPandasWithState(
        counted,
        outputStructType="seq bigint, due bigint, seen bigint",
        stateStructType="seen bigint",
        outputMode="update",
        timeoutConf=GroupStateTimeout.NoTimeout,
    )


def counted(
    key: Any,  # noqa: ARG001 - what Spark calls it with
    frames: "Iterator[Any]",
    state: GroupState,
) -> "Iterator[Any]":
    """One more for each row of a key; frames are those of pandas."""
    seen = state.get[0] if state.exists else 0
    for frame in frames:
        numbers = range(seen + 1, seen + 1 + len(frame))
        seen += len(frame)
        yield frame[["seq", "due"]].assign(seen=numbers)
    state.update((seen,))


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
