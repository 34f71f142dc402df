"""Executors that die or fall silent: the flow is started again at its last commit."""

import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import penstock
from penstock.faults.bed import RATE_PER_S, SINK, SOURCE, TASK, Bed
from penstock.faults.clocks import is_ahead, lacks_clocks, wish_for_one_ahead
from penstock.faults.items import PARTITIONS, Dated, Pass, dated
from penstock.faults.row import Outcome, Row
from penstock.faults.rows_workers import RECOVERS_IN_S as WORKER_RECOVERS_IN_S
from penstock.faults.rows_workers import worker_killed
from penstock.faults.sinks import Announced
from penstock.faults.victims import carriers, executors, kill, wait_until
from penstock.io import paced
from penstock.spark.job import Job
from penstock.spark.session import all_slots

RECOVERS_IN_S: Final = 15.0
NOTICED_IN_S: Final = 1.0
STOPPED_S: Final = 20.0
SILENT_NOTICED_IN_S: Final = 15.0
STOPPED_RECOVERS_IN_S: Final = 30.0
KILLS: Final = 3
SLOTS: Final = 12
MOVES_S: Final = 3.0


def executor_killed(bed: Bed) -> Outcome:
    """One of two."""
    job = bed.flowing(bed.flow(None))
    bed.strike(partial(kill_one, job, bed.chance))
    bed.expect("noticed after, s", _noticed_s(job), "<=", NOTICED_IN_S)
    return bed.outcome(counts=bed.settle(job))


def all_executors_killed(bed: Bed) -> Outcome:
    """The flow waits until there are others."""
    job = bed.flowing(bed.flow(None, sink=bed.once()))
    bed.strike(_kill_all)
    bed.expect("noticed after, s", _noticed_s(job), "<=", NOTICED_IN_S)
    return bed.outcome(counts=bed.settle(job))


def executors_killed_repeatedly(bed: Bed) -> Outcome:
    """One after the other, each as soon as the flow runs again."""
    job = bed.flowing(bed.flow(None, sink=bed.once()))
    for kills in range(KILLS):
        bed.strike(partial(kill_one, job, bed.chance))
        wait_until(partial(_started_again, job, kills), "the flow is started again", 60.0)
    counts = bed.settle(job)
    bed.expect("restarts", job.metrics().restarts, ">=", KILLS)
    return bed.outcome(counts=counts)


def killed_between_write_and_commit(bed: Bed) -> Outcome:
    """All of an epoch is written and on the disk, but not committed: it comes again and is written once."""
    once = bed.once()
    sink = Announced(once.directory)
    sink.awaited = bed.directory / "awaited"
    job = bed.flowing(bed.flow(None, sink=sink))

    def fault() -> None:
        sink.awaited.touch()
        wait_until(lambda: not sink.awaited.exists(), "an epoch is written")
        _kill_all()

    bed.strike(fault)
    return bed.outcome(counts=bed.settle(job))


def ended_at_once(bed: Bed) -> Outcome:
    """Executors that have just come, and flows that are given up while their first workers start there."""
    _kill_all()
    wait_until(lambda: all_slots(SparkSession.active()) < SLOTS, "killed executors are missed")
    for _ in range(3):
        job = bed.run(bed.flow(None))
        time.sleep(bed.chance.uniform(0.0, 0.6))
        job.abandon()
    job = bed.flowing(bed.flow(4.0))
    bed.strike(lambda: None)
    bed.end(job)
    bed.expect("restarts", job.metrics().restarts, "==", 0)
    return bed.outcome()


def executor_stopped(bed: Bed) -> Outcome:
    """SIGSTOP for 20 s: noticed, or caught up; what it does when it goes on is written nowhere twice."""
    job = bed.flowing(bed.flow(None, sink=bed.once()))
    stopped = bed.chance.choice(carriers(job))
    bed.strike(lambda: os.kill(stopped, signal.SIGSTOP))
    began_s = time.monotonic()
    try:
        noticed_s = _noticed_s(job, STOPPED_S)
        time.sleep(max(0.0, began_s + STOPPED_S - time.monotonic()))
    finally:
        if Path(f"/proc/{stopped}").exists():
            os.kill(stopped, signal.SIGCONT)
    bed.figures["noticed_s"] = noticed_s
    bed.expect("noticed after, s, or caught up", noticed_s or 0.0, "<=", SILENT_NOTICED_IN_S)
    return bed.outcome(counts=bed.settle(job))


def clock_ahead(bed: Bed) -> Outcome:
    """One of two executors is 5 s ahead of the other: latencies are told as they are."""
    wish_for_one_ahead(Path(os.environ["JAVA_HOME"]))
    _replaced(bed.chance.choice(executors()))
    ahead = [pid for pid in executors() if is_ahead(pid)]
    bed.expect("executors ahead of time", len(ahead))
    flow = penstock.Flow("trial")
    source = flow.source(paced(dated, RATE_PER_S / 2, partitions=PARTITIONS, seconds=4.0), name=SOURCE)
    sink = Dated(bed.witness().directory)
    source.task(Pass, name=TASK, parallelism=4).sink(sink, name=SINK, parallelism=2)
    job = bed.run(flow, sampling=1.0, measure_every="0.5 s")
    view = job.view()
    bed.end(job)
    seen = view.snapshot(4.0)
    placed = {executor for task in seen.tasks.values() for executor in task.worker or ()}
    bed.expect("executors with workers", len(placed), "==", 2)
    told = [*(stream.latency_ms for stream in seen.streams), seen.tasks[TASK].latency_ms]
    told_ms = sum(ms or 0.0 for ms in told)
    true_ms = float(bed.entries().latency_ms().mean())
    bed.figures |= {"told_ms": round(told_ms, 2), "true_ms": round(true_ms, 2)}
    bed.expect("latency told wrong by, ms", abs(told_ms - true_ms), "<=", 0.1 * true_ms + 10.0)
    for pid in ahead:
        _replaced(pid)
    return bed.outcome(counts={number: round(RATE_PER_S) for number in range(PARTITIONS)})


def _replaced(executor: int) -> None:
    """Kill one while nothing runs, and wait for its successor."""
    kill(executor)
    session = SparkSession.active()
    wait_until(
        lambda: executor not in executors() and len(executors()) == 2, "a killed executor is replaced", 60.0
    )
    wait_until(lambda: all_slots(session) >= SLOTS, "a killed executor is replaced", 60.0)


def _noticed_s(job: Job, within_s: float = 30.0) -> float | None:
    """How long the flow took to see that it is disturbed; None if it has not."""
    began_s = time.monotonic()
    restarts = job.metrics().restarts
    while job.is_running and job.metrics().restarts == restarts:
        if time.monotonic() > began_s + within_s:
            return None
        time.sleep(0.005)
    return round(time.monotonic() - began_s, 3)


def _started_again(job: Job, times: int) -> bool:
    return job.metrics().restarts > times


def kill_one(job: Job, chance: random.Random) -> None:
    """One of those in which workers of the flow run."""
    wait_until(lambda: carriers(job), "an executor carries the flow")
    kill(chance.choice(carriers(job)))


def _kill_all() -> None:
    for executor in executors():
        kill(executor)


ROWS = (
    Row("kill-executor", "kill -9 one of two executors", "cluster", executor_killed, RECOVERS_IN_S),
    Row(
        "kill-all-executors", "kill -9 all executors at once", "cluster", all_executors_killed, RECOVERS_IN_S
    ),
    Row(
        "kill-executors-repeatedly",
        "kill -9 an executor three times, each time that the flow runs again",
        "cluster",
        executors_killed_repeatedly,
        RECOVERS_IN_S,
    ),
    Row(
        "kill-before-commit",
        "kill -9 all executors between the last write of an epoch and its commit",
        "cluster",
        killed_between_write_and_commit,
        RECOVERS_IN_S,
    ),
    Row(
        "end-at-once",
        "flows given up as they start, on executors that have just come",
        "cluster",
        ended_at_once,
    ),
    Row("stop-executor", "SIGSTOP an executor for 20 s", "cluster", executor_stopped, STOPPED_RECOVERS_IN_S),
    Row(
        "clock-ahead",
        "the clock of one of two executors is 5 s ahead",
        "cluster",
        clock_ahead,
        lacks=lacks_clocks,
    ),
    Row(
        "kill-worker-of-executor",
        "kill -9 a worker of the task, with two executors",
        "cluster",
        partial(worker_killed, task=TASK, moves_s=MOVES_S),
        WORKER_RECOVERS_IN_S,
    ),
)
