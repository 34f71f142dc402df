"""Rates and CPU of a running job over windows of time, one setting after the other."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.processes import steady_cpu_s
from penstock.spark.job import Job


@dataclass(frozen=True, slots=True)
class Window:
    """What happened between two looks at a job."""

    seconds: float
    items: int
    cpu_s: float

    @property
    def items_per_s(self) -> float:
        return self.items / self.seconds

    @property
    def cpu_us_per_item(self) -> float | None:
        """CPU of all processes, Spark's and the driver's included; None if nothing came."""
        return self.cpu_s * 1e6 / self.items if self.items else None

    @property
    def cores(self) -> float:
        return self.cpu_s / self.seconds


@dataclass(frozen=True, slots=True)
class CpuSpan:
    """A time and the CPU it took; whose items they were is known later, from a sink's ledger."""

    begin_ns: int
    end_ns: int
    cpu_s: float


def cpu_span(seconds: float) -> CpuSpan:
    """Wait; CPU of all processes without the compilers of the JVM, which are busy after a start."""
    begin_ns, before_s = time.monotonic_ns(), steady_cpu_s()
    time.sleep(seconds)
    return CpuSpan(begin_ns, time.monotonic_ns(), steady_cpu_s() - before_s)


def arrived(job: Job) -> int:
    """Items that have reached the sinks."""
    sinks = [task.name for task in job.layout.graph.tasks if task.kind == "sink"]
    tasks = job.metrics().tasks
    return sum(tasks[sink].items_in for sink in sinks)


def window(job: Job, seconds: float) -> Window:
    """Look, wait, look again. The compilers of the JVM, which are busy after a start, do not count."""
    items, cpu_s, begin = arrived(job), steady_cpu_s(), time.monotonic()
    time.sleep(seconds)
    return Window(time.monotonic() - begin, arrived(job) - items, steady_cpu_s() - cpu_s)


def lifetimes_in_turn(
    job: Job, lifetimes: Mapping[str, str], *, turns: int, settle_s: float, window_s: float
) -> dict[str, list[Window]]:
    """Give all streams one lifetime after the other, several times, and look at each once it has settled."""
    taken: dict[str, list[Window]] = {name: [] for name in lifetimes}
    for _ in range(turns):
        for name, lifetime in lifetimes.items():
            for stream in job.layout.graph.streams:
                job.set_batch_lifetime(stream.name, lifetime)
            time.sleep(settle_s)
            taken[name].append(window(job, window_s))
    return taken
