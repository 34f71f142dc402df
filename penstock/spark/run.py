"""`penstock.run`: from a declared flow to a running one."""

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import cloudpickle
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.durations import Duration
from penstock.flow.errors import FlowError
from penstock.flow.flow import Flow
from penstock.flow.graph import Graph
from penstock.flow.layers import Layout, lay_out, max_slots
from penstock.flow.pickling import check_picklable
from penstock.spark.bridge import Bridge, Split
from penstock.spark.changes import measuring_interval_s, sampling_share
from penstock.spark.checkpoint import TemporaryCheckpoint, checkpoint_address
from penstock.spark.commits import commit_ms
from penstock.spark.failure_words import first_words
from penstock.spark.holding import hold
from penstock.spark.job import Job
from penstock.spark.launcher import Launcher
from penstock.spark.restarts import MOST, Restarts
from penstock.spark.session import all_slots, session
from penstock.spark.slots import BOOK
from penstock.spark.supervisor import Supervisor
from penstock.wire.ids import check_distinct
from penstock.wire.orders import Plan, Position, Switches
from penstock.wire.routes import routes

if TYPE_CHECKING:
    from penstock.io.protocol import Source


def run(
    flow: Flow,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    commit: Duration | None = None,
    sampling: float = 0.1,
    measure_every: Duration = "1 s",
    dead_letters: str | os.PathLike[str] | None = None,
    restarts: int = MOST,
    on_notice: Callable[[str], None] | None = None,
) -> Job:
    """Start a flow on Spark and return its handle.

    `checkpoint` is where Spark keeps what is committed; without it the flow cannot be resumed. One driver at
    a time holds it. `commit` is the longest time between two commits (default: 30 s with a checkpoint, 10 min
    without). `sampling` is the share of items that is measured, `measure_every` the time between two reports
    of a worker. `dead_letters` is the directory for items of tasks with on_error="dead_letter" (default:
    dead_letters/FLOW here).

    A flow that Spark or the machine ended is started again at its last commit, at most `restarts` times in
    ten minutes; errors of the user's code end it. `on_notice` is called with what somebody should hear of.
    """
    allowed = Restarts(restarts, time.monotonic)
    graph = flow.graph()
    share, measure_every_s = sampling_share(sampling), measuring_interval_s(measure_every)
    between_ms = commit_ms(commit, has_checkpoint=checkpoint is not None)
    check_picklable(graph)
    layout = lay_out(graph)
    splits, starts = _splits(graph, layout), _starts(graph)
    if graph.ids:
        check_distinct([(one.source, one.split) for one in splits], [stream.name for stream in graph.streams])
    letters = Path(dead_letters or dead_letters_of(graph)).absolute()
    plan = cloudpickle.dumps(Plan(graph, str(letters)))
    needs = _needs(layout)
    wanted = layout.slots if master else max_slots(graph)
    spark = session(wanted, master, conf, least=layout.slots, needed_by=needs)
    run_id = uuid.uuid4().hex
    with ExitStack() as undo, _told_in_words(graph.name):
        kept = undo.enter_context(ExitStack())  # until the flow is over
        claim = BOOK.claim(run_id, graph.name, layout.slots, all_slots(spark), needs)
        kept.callback(claim.free)
        place = None
        if checkpoint is None:
            temporary = TemporaryCheckpoint()
            kept.callback(temporary.remove)
            address = temporary.address
        else:
            address = checkpoint_address(checkpoint)
            place = hold(spark, address, graph.name)
            kept.callback(place.release)
        bridge = Bridge(spark, graph.name, plan, sys.executable, _python_path())
        launcher = Launcher(
            spark, bridge, graph.name, splits, starts, round(between_ms), address, checkpoint is not None
        )
        undo.callback(bridge.close, 0)
        switches = Switches(
            routes=routes(layout),
            active={task.name: task.parallelism.initial for task in graph.tasks},
            lifetime_ms={stream.name: stream.batch_lifetime_ms for stream in graph.streams},
            sampling=share,
            measure_every_s=measure_every_s,
        )
        known = launcher.launch(layout, switches)
        undo.pop_all()
    supervisor = Supervisor(layout, switches, launcher, claim, allowed, known, kept, on_notice)
    if place is not None:
        place.when_taken(supervisor.place_taken)
    return Job(supervisor, claim, between_ms / 1000)


def dead_letters_of(graph: Graph) -> Path:
    """The directory for the dead letters of a flow, if none is named."""
    return Path("dead_letters") / graph.name


@contextmanager
def _told_in_words(flow: str) -> Iterator[None]:
    """An error of Java while a flow is started, without the stack."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as problem:
        raise FlowError(f'flow "{flow}" cannot be started: {first_words(str(problem))}') from None


def _starts(graph: Graph) -> dict[str, dict[str, Position]]:
    """Where every split of every source begins."""
    sources = {task.name: cast("Source", task.body) for task in graph.tasks if task.kind == "source"}
    return {
        name: {split: Position(0, source.start(split)) for split in source.splits}
        for name, source in sources.items()
    }


def _splits(graph: Graph, layout: Layout) -> list[Split]:
    """Which split each partition of the first layer reads."""
    by_partition = {
        layout.partition_of(task.name, replica): Split(task.name, split)
        for task in graph.tasks
        if task.kind == "source"
        for replica, split in enumerate(cast("Source", task.body).splits)
    }
    return [by_partition[partition] for partition in range(len(by_partition))]


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
