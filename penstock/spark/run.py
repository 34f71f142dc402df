"""`penstock.run`: from a declared flow to a running one."""

import os
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import cloudpickle
import msgspec

from penstock.durations import Duration, format_ms, milliseconds
from penstock.flow.errors import FlowError
from penstock.flow.flow import Flow
from penstock.flow.graph import Graph
from penstock.flow.layers import Layout, lay_out, max_slots
from penstock.flow.pickling import check_picklable
from penstock.spark.bridge import Bridge
from penstock.spark.job import Job
from penstock.spark.measuring import measuring_interval_s, sampling_share
from penstock.spark.plan import Plan
from penstock.spark.routes import Settings, routes
from penstock.spark.session import session
from penstock.spark.sourcing import Position

if TYPE_CHECKING:
    from penstock.io.protocol import Source

_SHORTEST_BATCH_MS = 1_000  # a boundary takes some tenths of a second
_LONGEST_BATCH_MS = 12 * 3_600_000  # well below the trigger, which would cut a batch off


def run(
    flow: Flow,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    batch: Duration = "10 min",
    sampling: float = 0.1,
    measure_every: Duration = "1 s",
    dead_letters: str | os.PathLike[str] | None = None,
) -> Job:
    """Start a flow on Spark and return its handle.

    `checkpoint` is where Spark keeps what is committed; without it the flow cannot be resumed. `batch` is the
    longest time between two commits. `sampling` is the share of items that is measured, `measure_every` the
    time between two reports of a worker. `dead_letters` is the directory for items of tasks
    with on_error="dead_letter" (default: dead_letters/FLOW here).
    """
    graph = flow.graph()
    share, measure_every_s = sampling_share(sampling), measuring_interval_s(measure_every)
    batch_ms = milliseconds(batch)
    if not _SHORTEST_BATCH_MS <= batch_ms <= _LONGEST_BATCH_MS:
        raise FlowError(f"a batch of {format_ms(batch_ms)} is not between 1 s and 12 h; choose one within")
    check_picklable(graph)
    layout = lay_out(graph)
    letters = Path(dead_letters or Path("dead_letters") / graph.name).absolute()
    plan = cloudpickle.dumps(Plan(graph, str(letters)))
    slots = layout.slots if master else max_slots(graph)
    spark = session(slots, master, conf, needed_by=_needs(layout))
    run_id = uuid.uuid4().hex
    bridge = Bridge(spark, run_id, graph.name, plan, sys.executable, _python_path())
    settings = Settings(
        routes=routes(layout),
        active={task.name: task.parallelism.initial for task in graph.tasks},
        lifetime_ms={stream.name: stream.batch_lifetime_ms for stream in graph.streams},
        sampling=share,
        measure_every_s=measure_every_s,
    )
    bridge.publish(msgspec.json.encode(settings))
    temporary = tempfile.mkdtemp(prefix="penstock-checkpoint-") if checkpoint is None else None
    query = bridge.start(
        layout,
        _first_offsets(graph, layout),
        round(batch_ms),
        str(temporary or Path(cast("str", checkpoint)).absolute()),
        f"{graph.name}-{run_id[:8]}",
    )
    return Job(layout, settings, bridge, query, max(slots, spark.sparkContext.defaultParallelism), temporary)


def _first_offsets(graph: Graph, layout: Layout) -> bytes:
    positions: dict[str, Position] = {}
    for task in graph.tasks:
        if task.kind == "source":
            source = cast("Source", task.body)
            for partition in range(source.partitions):
                place = str(layout.partition_of(task.name, partition))
                positions[place] = Position(0, source.start(partition))
    return msgspec.json.encode(positions)


def _needs(layout: Layout) -> str:
    parts = [f"{unit.pool} for {' + '.join(unit.tasks)}" for layer in layout.layers for unit in layer.units]
    relays = sum(layer.relay is not None for layer in layout.layers)
    if relays:
        parts.append(f"{relays} for relays")
    return f'flow "{layout.graph.name}" needs {", ".join(parts)}'


def _python_path() -> str:
    """Workers import what the driver can import."""
    places = [place or str(Path.cwd()) for place in sys.path]
    return os.pathsep.join(dict.fromkeys(place for place in places if Path(place).exists()))
