"""What workers and bridges tell the driver."""

from typing import Any

import msgspec

from penstock.stats.report import ChannelReport, ReplicaReport


class WorkerReport(msgspec.Struct, frozen=True):
    """Totals of one task in one worker process since it began there.

    Numbers of processes are used again; `born_ns` tells two with the same number apart. `made` counts the
    reports of a process: they come in two ways, at boundaries and in between, and may overtake each other.
    """

    task: str
    replica: int
    pid: int
    items_in: int
    items_out: int
    envelopes_out: int
    skipped: int
    dead_lettered: int
    latency_ms: dict[str, Any]
    sent: dict[str, int] = {}
    serial: int = 0
    born_ns: int = 0
    made: int = 0


class Restart(msgspec.Struct, frozen=True):
    """A worker died, and was replaced or ended the run.

    `shown` is what it showed of itself (penstock/epochs/killers.py).
    """

    task: str
    replica: int
    how: str
    shown: str = ""


class Failure(msgspec.Struct, frozen=True):
    """Why the flow stopped; one that `may_pass` is no error of the user's code, and another start may do."""

    task: str
    replica: int
    problem: str
    may_pass: bool = False

    def words(self, flow: str) -> str:
        """For the user."""
        return f'flow "{flow}", task "{self.task}", replica {self.replica}: {self.problem}'


class QueuedChannel(msgspec.Struct, frozen=True, array_like=True):
    """What waits of one channel before a replica: the number of its stream, and the sending replica.

    The age is that of the envelope that has waited longest.
    """

    stream: int
    sender: int
    envelopes: int
    items: int
    bytes: int
    age_ms: float


class ShuffleHeld(msgspec.Struct, frozen=True, array_like=True):
    """What the rows that wait in the shuffles of an executor hold, and may hold."""

    bytes: int
    limit_bytes: int


class Refused(msgspec.Struct, frozen=True):
    """Connections that an executor has closed because of what came over them, and what the last one was."""

    count: int
    last: str


class Footprint(msgspec.Struct, frozen=True):
    """What an executor takes of its machine: `java_s` CPU seconds of its Java in the last `over_s` seconds.

    The memory is that of its Java and of all processes that it has started, None where nobody tells.
    """

    cores: int
    java_s: float
    over_s: float
    memory_bytes: int | None = None


class Slots(msgspec.Struct, frozen=True, array_like=True):
    """Tasks of Spark that an executor may run at a time, and those that it runs."""

    all: int
    used: int


class Report(msgspec.Struct, frozen=True):
    """One report: of a worker, with what its last interval showed, or of one of the other events.

    `gone` is the process id of a worker that says nothing more. `passed_ms` are sketches of how long the
    tagged items of the interval took that left the sequence of a constraint here. `queue` is what waits
    before the worker now, `shuffle` what waits in all of its executor, None where nobody knows. `footprint`
    is what the executor takes.
    """

    worker: WorkerReport | None = None
    restarted: Restart | None = None
    failed: Failure | None = None
    gone: int | None = None
    interval: ReplicaReport | None = None
    channels: list[ChannelReport] = []
    passed_ms: dict[str, dict[str, Any]] = {}
    chained: "list[Report]" = []
    queue: list[QueuedChannel] | None = None
    shuffle: ShuffleHeld | None = None
    refused: Refused | None = None
    footprint: Footprint | None = None


class Said(msgspec.Struct, frozen=True):
    """A report, and the executor whose worker or bridge it comes from."""

    executor: str
    said: Report
