"""Kafka at both ends of a flow: what dies, and what is in the topic behind the sink then."""

import signal
from collections.abc import Callable
from functools import partial
from typing import Final

from penstock.faults.bed import Bed
from penstock.faults.drivers import PENSTOCK, await_no_orphans, private_directories, started
from penstock.faults.kafka_bed import SINK, SOURCE, committed, flow, kafka_bed, lacks_kafka
from penstock.faults.row import Outcome, Row, Where
from penstock.faults.rows_driver import DEADLINE_S
from penstock.faults.rows_executors import RECOVERS_IN_S, kill_one
from penstock.faults.victims import kill_worker, wait_until

STARTS_S: Final = 90.0
# Its successor has to find the broker first.
WORKER_RECOVERS_IN_S: Final = 5.0


def worker_killed(bed: Bed, task: str) -> Outcome:
    """Its successor reads on, or gets what the broker had not confirmed."""
    with kafka_bed(bed) as trial:
        job = trial.flowing()
        trial.strike(partial(kill_worker, job, task, bed.chance))
        trial.settle()
        job.stop()
        bed.expect("workers replaced", job.metrics().tasks[task].restarts)
        return trial.outcome()


def executor_killed(bed: Bed) -> Outcome:
    """The flow is started again at its last commit."""
    with kafka_bed(bed) as trial:
        job = trial.flowing()
        trial.strike(partial(kill_one, job, bed.chance))
        trial.settle()
        job.stop()
        bed.expect("restarts", job.metrics().restarts)
        return trial.outcome()


def driver_killed(bed: Bed) -> Outcome:
    """All of it ends; a start on the same checkpoint goes on at the offsets of the last commit."""
    with kafka_bed(bed) as trial:
        command = [*PENSTOCK, "run", f"{flow.__module__}:flow", "--option", f"servers={trial.servers}"]
        command += ["--checkpoint", str(bed.checkpoint), "--commit", "2 s"]
        with started(bed, command) as first:
            trial.feeder.start()
            wait_until(partial(_some_committed, bed), "a commit with records", STARTS_S)
            trial.strike(partial(first.signal, signal.SIGKILL), 1.0, 4.0)
            await_no_orphans(bed)
        with started(bed, command) as second:
            trial.settle()
            second.signal(signal.SIGTERM)
            bed.expect("exit code", second.wait(DEADLINE_S), "==", 0)
            await_no_orphans(bed)
        bed.expect("directories left", len(private_directories(bed)), "==", 0)
        return trial.outcome()


def _some_committed(bed: Bed) -> bool:
    return sum(committed(bed.checkpoint).values()) > 0


def _row(
    name: str, about: str, where: Where, run: Callable[[Bed], Outcome], recovers_in_s: float | None = None
) -> Row:
    return Row(f"kafka-{name}", f"topic to topic: {about}", where, run, recovers_in_s, lacks_kafka)


ROWS = (
    _row(
        "kill-source-worker",
        "kill -9 a worker of the source",
        "local",
        partial(worker_killed, task=SOURCE),
        WORKER_RECOVERS_IN_S,
    ),
    _row(
        "kill-sink-worker",
        "kill -9 the worker of the sink",
        "local",
        partial(worker_killed, task=SINK),
        WORKER_RECOVERS_IN_S,
    ),
    _row("kill-executor", "kill -9 one of two executors", "cluster", executor_killed, RECOVERS_IN_S),
    _row("kill-driver", "kill -9 the driver, and a start on the same checkpoint", "own", driver_killed),
)
