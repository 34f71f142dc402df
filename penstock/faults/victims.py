"""Whom a fault hits: the processes of a running flow, by what they are."""

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from penstock import processes
from penstock.spark.job import Job

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
ZYGOTE = "penstock.worker.zygote"


class NotInTimeError(RuntimeError):
    """Something that a trial waits for did not happen; the message says what."""


def wait_until(condition: Callable[[], Any], what: str, within_s: float = 30.0) -> None:
    """Look again and again."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise NotInTimeError(f"{what}: not within {within_s:g} s")
        time.sleep(0.02)


def command(pid: int) -> list[str]:
    """The words of its command line; none for a process that is gone."""
    try:
        return (processes.PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def is_java(pid: int) -> bool:
    """Whether it is a Java virtual machine, or about to become one."""
    words = command(pid)
    return bool(words) and (words[0].endswith("java") or EXECUTOR in words)


def executors() -> list[int]:
    """The executors of this driver that are processes of their own."""
    below = processes.tree(os.getpid())
    return [pid for pid in below if EXECUTOR in (words := command(pid)) and words[0].endswith("java")]


def carriers(job: Job) -> list[int]:
    """The executors in which workers of a flow run."""
    running = {pid for task in job.metrics().tasks.values() for pid in task.processes}
    return [pid for pid in executors() if running & set(processes.tree(pid))]


def zygotes(root: int | None = None) -> list[int]:
    """The parents of workers below a process, this one if none is named."""
    below = processes.tree(os.getpid() if root is None else root)
    by_words = [pid for pid in below if ZYGOTE in command(pid)]
    # Workers are forked from their zygote and share its command line.
    return [pid for pid in by_words if _parent(pid) not in by_words]


def workers(job: Job, task: str) -> list[int]:
    """The processes of a task, one for each active replica; those of replicas that moved have ended."""
    active = job.metrics().tasks[task].active
    wait_until(lambda: len(living(job, task)) == active, f"all workers of {task} report")
    return living(job, task)


def living(job: Job, task: str) -> list[int]:
    """The processes of a task that live, those that are about to end as well."""
    return [pid for pid in job.metrics().tasks[task].processes if processes.stat(pid) is not None]


def kill(pid: int) -> None:
    """At once, without a chance to say anything."""
    os.kill(pid, signal.SIGKILL)


def kill_one(chosen: Callable[[], int]) -> None:
    """A process that may have ended by itself since it was chosen; then another one."""
    while True:
        try:
            kill(chosen())
        except ProcessLookupError:
            continue
        return


def kill_worker(job: Job, task: str, chance: random.Random) -> None:
    """One of a task's processes."""
    kill(chance.choice(workers(job, task)))


def jvm() -> Any:
    """Py4J's view of the driver's Java virtual machine; None without a session."""
    session = SparkSession.getActiveSession()
    return None if session is None else session._jvm


def _parent(pid: int) -> int:
    fields = processes.stat(pid)
    return 0 if fields is None else int(fields[1])
