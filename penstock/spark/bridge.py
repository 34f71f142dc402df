"""All contact of Python with Spark's JVM: the query of a flow, and the driver's side of the bridge."""

import gc
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.sql import SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

from penstock.flow.layers import Layer, Layout
from penstock.spark.reading import Reading
from penstock.wire.orders import Switches

_COLUMN = "penstock_target_"
_TRIGGER = (
    "1 day"  # never reached: Penstock ends batches itself, and a batch that Spark cuts off would be torn
)
NO_RELAY = -1


class LastBoundary(msgspec.Struct, frozen=True, array_like=True):
    """How long no source read at the last boundary (0: there was none) and for how long they have since."""

    gap_ms: float
    flowing_ms: float


class Seen(msgspec.Struct, frozen=True):
    """What the workers said since the last look, a JSON array; executors that are lost, in words; whether all
    sources have run dry, and everything is drained.
    """

    reports: msgspec.Raw
    lost: str
    exhausted: bool


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a run begins; `batch` is the number of its first batch.

    The sources read what `reading` says, from the beginning of what the checkpoint does not know.
    """

    reading: Reading
    batch: int
    commit_ms: int
    checkpoint: str
    epoch: int | None = None
    """The last that is committed, where commits are epoch marks."""


class Bridge:
    """A flow in the driver's JVM: one run after the other, each with its layers and its query."""

    def __init__(self, spark: SparkSession, flow: str, plan: bytes, python: str, python_path: str) -> None:
        self._spark = spark
        jvm = spark._jvm
        assert jvm is not None
        self._package = jvm.org.penstock.bridge
        self._flow = flow
        self.plan = plan
        """What the workers of the next run are told, pickled."""
        self.store: str | None = None
        """Where they find files of state, if only through their executor."""
        self._python = (python, python_path)
        self._id = ""
        self._spec: Any = None
        self._run: Any = None
        self._layers: list[Any] = []
        self._query: StreamingQuery | None = None
        self._error: tuple[StreamingQuery | None, object] = None, None
        self._reading: Reading | None = None

    @property
    def is_local(self) -> bool:
        """Whether all of Spark is on this machine, below this process."""
        return (self._spark.sparkContext.master or "").startswith("local")

    def shuffle_problem(self) -> str | None:
        """Why rows between executors go over Spark's own shuffle where Penstock's was to be used."""
        jvm: Any = self._spark._jvm
        found = jvm.org.apache.spark.penstock.LinkShuffleManager.fallback()
        return None if found is None else str(found)

    def publish(self, switches: Switches) -> None:
        """Make new switches known to all workers."""
        self._run.publish(msgspec.json.encode(switches).decode())

    def await_adopted(self, timeout_ms: int) -> bool:
        """Wait until every executor has adopted what was published last."""
        return bool(self._run.awaitAdopted(timeout_ms))

    def start(self, layout: Layout, switches: Switches, beginning: Beginning) -> None:
        """Begin a run: a query of the source, then each layer behind a shuffle by partition id."""
        self._id = uuid.uuid4().hex
        self._spec = self._package.RunSpec(self._id, self._flow, *self._python, self.plan, self.store)
        self._run = self._package.Runs.open(self._id)
        self._layers = []
        self._reading = beginning.reading
        self.publish(switches)
        if beginning.epoch is not None:
            self._run.useMarks(beginning.epoch)
        spec = self._package.FlowSource.Spec.of(
            self._spec,
            *self._source_arguments(layout, beginning.reading),
            self._column(1),
            beginning.commit_ms,
        )
        self._run.setSource(spec, beginning.batch)
        frame = (
            self._spark.readStream.format("org.penstock.bridge.FlowSource")
            .option("run", self._id)
            .load()
            ._jdf
        )
        for layer in layout.layers[1:]:
            column = functions.col(self._column(layer.index))._jc
            made = self._package.Layer(self._spec, layer.index, *self._layer_arguments(layout, layer))
            self._layers.append(made)
            frame = frame.repartitionById(layer.partitions, column).mapPartitions(
                made, self._encoder(layer.index + 1)
            )
        self._set_widths(layout)
        jvm = self._spark._jvm
        assert jvm is not None
        writer = (
            frame.writeStream()
            .foreach(self._package.Discard())
            .outputMode("update")
            .queryName(f"{self._flow}-{self._id[:8]}")
            .option("checkpointLocation", beginning.checkpoint)
            # Written in order, offsets before commits: a driver killed in between leaves a usable checkpoint.
            .option("asyncProgressTrackingEnabled", "false")
            .trigger(jvm.org.apache.spark.sql.streaming.Trigger.RealTime(_TRIGGER))
        )
        is_first = self._query is None
        self._query = StreamingQuery(writer.start())
        if not is_first:
            # Java keeps what Python refers to, and py4j's objects refer to themselves: without this the run
            # before, with its query and its plan, stays until Python happens to look for cycles.
            gc.collect()

    @property
    def is_active(self) -> bool:
        """Whether the query runs."""
        return self._query is not None and self._query.isActive

    def error(self) -> object:
        """Why the query ended by itself, None if it did not."""
        query, (of, known) = self._query, self._error
        if query is None or query is of:
            return known
        error = query.exception()  # takes a tenth of a second, as it brings all of Java's traces along
        if error is not None:
            self._error = query, error
        return error

    def end_query(self) -> None:
        """Stop the query at once, drained or not."""
        if self._query is not None:
            self._query.stop()

    def lost_executors(self) -> str:
        """In words, executors of this run that are gone or silent; empty if there are none."""
        return "" if self._run is None else str(self._run.lostExecutors())

    def slots(self) -> bytes:
        """By executor, as JSON: the tasks of Spark that it may run at a time, and those that it runs."""
        jvm: Any = self._spark._jvm
        context: Any = self._spark.sparkContext._jsc
        return str(jvm.org.apache.spark.penstock.SparkInternals.slotsByExecutor(context.sc())).encode()

    def replace_silent_executors(self) -> None:
        """Give up those that have been silent for so long that their workers have ended themselves.

        Spark ends them, and starts others in their places where the cluster can.
        """
        jvm: Any = self._spark._jvm
        context: Any = self._spark.sparkContext._jsc
        for executor in str(self._run.loseSilentExecutors()).split():
            jvm.org.apache.spark.penstock.SparkInternals.replaceExecutor(context.sc(), executor)

    def change(self, layout: Layout) -> None:
        """Other pool sizes, or other splits to be read, from the next batch on."""
        assert self._reading is not None, "a run was begun"
        self._run.changeSource(*self._source_arguments(layout, self._reading))
        for layer, made in zip(layout.layers[1:], self._layers, strict=True):
            made.change(*self._layer_arguments(layout, layer))
        self._set_widths(layout)

    def end_batch(self, *, closing: bool) -> None:
        """End the running batch and hold the next."""
        self._run.endBatch(closing)

    def await_gate(self, timeout_ms: int) -> bool:
        """Wait until everything before the held batch is drained."""
        return bool(self._run.awaitGate(timeout_ms))

    def release(self) -> None:
        """Let the held batch begin."""
        self._run.release()

    def await_flowing(self, batch: int, timeout_ms: int) -> bool:
        """Wait until sources read in that batch."""
        return bool(self._run.awaitFlowing(batch, timeout_ms))

    def order_epoch(self, *, quiet: bool) -> int:
        """Have sources mark the next epoch, if they read now; its number, 0 if they do not."""
        return int(self._run.orderEpoch(quiet))

    def next_epoch(self) -> int:
        """The number that the next order has, unless the batch ends before it; 0 if none can be given now."""
        return int(self._run.nextEpoch())

    def await_done(self, known_end: int, missing: int, timeout_ms: int) -> bytes:
        """What was reported of epochs since the last call, as JSON.

        Waits for as many reports as are missing, for the end of the batch, or for `wake`.
        """
        return str(self._run.awaitDone(known_end, missing, timeout_ms)).encode()

    def wake(self) -> None:
        """Whoever waits for such reports has something else to do."""
        if self._run is not None:
            self._run.wake()

    def epoch_over(self, epoch: int, *, committed: bool) -> None:
        """It is in the log, or void."""
        self._run.epochOver(epoch, committed)

    def batch(self) -> int:
        """Number of the batch that runs or is held."""
        return int(self._run.batch())

    def last_boundary(self) -> LastBoundary:
        """Whoever began it; one that is not over yet counts as long as it has lasted."""
        return msgspec.json.decode(self._run.lastBoundary(), type=LastBoundary)

    def is_exhausted(self) -> bool:
        """All sources have run dry, and everything is drained."""
        return bool(self._run.isExhausted())

    def look(self) -> Seen:
        """All that is asked for again and again, at once."""
        return msgspec.json.decode(self._run.look(), type=Seen)

    def close(self, timeout_ms: int) -> bool:
        """End the run; False if some executor did not confirm that its workers are gone."""
        return self._run is None or bool(self._package.Runs.close(self._id, timeout_ms))

    def _column(self, layer: int) -> str:
        return f"{_COLUMN}{self._id}_{layer}"

    def _encoder(self, layer: int) -> Any:
        jvm = self._spark._jvm
        assert jvm is not None
        schema = f"{self._column(layer)} int, payload binary"
        return jvm.org.apache.spark.sql.Encoders.row(
            jvm.org.apache.spark.sql.types.StructType.fromDDL(schema)
        )

    def _set_widths(self, layout: Layout) -> None:
        for layer in layout.layers[1:]:
            self._run.setWidth(self._column(layer.index), layer.partitions)

    def _source_arguments(self, layout: Layout, reading: Reading) -> Sequence[Any]:
        return (
            self._units(layout, layout.layers[0]),
            reading.by_partition(layout).decode(),
            reading.positions().decode(),
        )

    def _layer_arguments(self, layout: Layout, layer: Layer) -> Sequence[Any]:
        following = layer.index + 1
        next_relay = layout.relay_of(following) if following < len(layout.layers) else None
        return (
            self._units(layout, layer),
            NO_RELAY if layer.relay is None else layer.relay,
            NO_RELAY if next_relay is None else next_relay,
        )

    def _units(self, layout: Layout, layer: Layer) -> Any:
        units = [
            {
                "tasks": unit.tasks,
                "feeds": [
                    sorted(
                        {
                            unit.tasks.index(s.receiver)
                            for s in layout.graph.outputs_of(task)
                            if layout.is_local(s)
                        }
                    )
                    for task in unit.tasks
                ],
                "first": unit.first,
                "pool": unit.pool,
            }
            for unit in layer.units
        ]
        return self._package.UnitSpec.parse(msgspec.json.encode(units).decode())
