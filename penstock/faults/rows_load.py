"""More load than a flow can carry: memory stays bounded, the source is held back, and all of it drains."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import penstock
from penstock import processes
from penstock.faults.alarms import alarms
from penstock.faults.bed import SINK, SOURCE, TASK, Bed
from penstock.faults.row import Outcome, Row
from penstock.faults.sinks import Held
from penstock.faults.tasks import HEAVY_BYTES, SERVICE_S, Heavy, Slow
from penstock.faults.victims import is_java
from penstock.io.schedule import Schedule, steps

GROWTH_MB: Final = 64.0
WAITING_MB: Final = 32.0
REPLICAS: Final = 2
AT_ONCE: Final = ("guards.warm_up_s=0",)


def sink_held_up(bed: Bed, pause_s: float | None) -> Outcome:
    """For three seconds, at 600 items/s of 20 KB: most of them must wait in the source."""
    sink = bed.witness(Held)
    sink.gate, sink.pause_s = bed.directory / "gate", pause_s
    flow = penstock.Flow("trial")
    source = flow.source(bed.source(8.0), name=SOURCE)
    source.task(Heavy, name=TASK, parallelism=2).sink(sink, name=SINK)
    job = bed.flowing(flow)
    with memory_watched(bed):
        bed.strike(sink.gate.touch)
        time.sleep(3.0)
        tasks = job.metrics().tasks
        waiting_mb = (tasks[TASK].items_out - tasks[SINK].items_in) * HEAVY_BYTES * 1e-6
        bed.expect("waiting before the sink, MB", round(waiting_mb, 1), "<=", WAITING_MB)
        sink.gate.unlink()
        bed.healed()
        bed.end(job)
    return bed.outcome()


def _elastic(bed: Bed, schedule: Schedule, most: int) -> penstock.Flow:
    flow = penstock.Flow("trial")
    source = flow.source(bed.source(None, schedule), name=SOURCE)
    parallelism = penstock.elastic(1, most, pool=most)
    source.task(Slow, name=TASK, parallelism=parallelism).sink(bed.witness(), name=SINK)
    flow.constrain("50 ms", [f"{SOURCE}->{TASK}", TASK, f"{TASK}->{SINK}"])
    return flow


def overloaded(bed: Bed) -> Outcome:
    """Three times what all replicas can do, for three seconds; then a load that they can carry."""
    schedule = steps([(2.0, 100.0), (3.0, 3 * REPLICAS / SERVICE_S), (9.0, 60.0)])
    with alarms() as heard, memory_watched(bed):
        job = bed.run(
            _elastic(bed, schedule, REPLICAS),
            sampling=0.5,
            policy="nephele",
            settings=AT_ONCE,
            interval="1 s",
        )
        bed.await_items(200, job)
        bed.strike(lambda: None, 0.5, 1.5)
        bed.end(job)
    bed.expect("told that it is infeasible", any("cannot be kept" in line for line in heard))
    bed.expect("replicas at the most", job.metrics().tasks[TASK].active, "<=", REPLICAS)
    return bed.outcome()


def flapping(bed: Bed) -> Outcome:
    """50 and 400 items/s in turn, each for a second, which is one interval of the controller."""
    schedule = steps([(2.0, 100.0), *[(1.0, rate) for _ in range(3) for rate in (400.0, 50.0)], (2.0, 100.0)])
    job = bed.run(_elastic(bed, schedule, 6), sampling=0.5, policy="ds2", settings=AT_ONCE, interval="1 s")
    with memory_watched(bed):
        bed.await_items(100, job)
        bed.strike(lambda: None, 0.5, 1.5)
        bed.end(job)
    shown = [entry.decision.parallelism[TASK] for entry in job.decisions()]
    turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(shown, shown[1:], shown[2:], strict=False))
    bed.figures["replicas"] = shown
    bed.expect("times that replicas went up and down again", turns, "<=", 2)
    return bed.outcome()


@contextmanager
def memory_watched(bed: Bed) -> Iterator[None]:
    """How much the workers grow together, at the most; Java's heap has a limit of its own."""
    over = threading.Event()
    before_mb = _resident_mb()
    seen = [before_mb]

    def watch() -> None:
        while not over.wait(0.25):
            seen.append(_resident_mb())

    watching = threading.Thread(target=watch, name="memory", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
    bed.figures["grown_mb"] = round(max(seen) - before_mb, 1)
    bed.expect("memory of workers grown, MB", bed.figures["grown_mb"], "<=", GROWTH_MB)


def _resident_mb() -> float:
    below = processes.tree(os.getpid())[1:]
    return sum(processes.pss_mb(pid) or 0.0 for pid in below if not is_java(pid))


ROWS = (
    Row(
        "slow-sink",
        "a sink that takes 5 ms an item for 3 s, at 600 items/s of 20 KB",
        "local",
        partial(sink_held_up, pause_s=0.005),
    ),
    Row(
        "blocked-sink",
        "a sink that takes nothing for 3 s, at 600 items/s of 20 KB",
        "local",
        partial(sink_held_up, pause_s=None),
    ),
    Row("overload", "three times what the most replicas can do, for 3 s", "local", overloaded),
    Row("flapping-load", "a load that changes by a factor of 8 every second", "local", flapping),
)
