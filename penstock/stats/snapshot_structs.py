"""Version 2 of the snapshot: everything a policy may know about a flow, for one adjustment interval.

Units are in the names, rates are per second, and every number of a task is that of its average replica unless
the name says total. What was not measured is None (absent or null in JSON), never 0 and never NaN.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

VERSION = 2
ARROW = "->"

Count = Annotated[int, Meta(ge=0)]
Replicas = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, lt=1)]
Kind = Literal["source", "task", "sink"]
LatencyKind = Literal["read_ready", "read_write"]
Wiring = Literal["round_robin", "key", "broadcast", "forward"]


class SnapshotError(ValueError):
    """A snapshot that cannot be used; the message names the field and what would be right."""


class InstanceStats(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One replica of a task in this interval (what DS2 reads)."""

    useful_s: Amount | None = None
    processed: Amount | None = None
    emitted: Amount | None = None


class QueueStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What waits at the end of the interval; the age is that of the item that has waited longest."""

    items: Amount | None = None
    envelopes: Amount | None = None
    bytes: Amount | None = None
    age_ms: Amount | None = None


class ChannelStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One channel of a stream: from replica `sender` to replica `receiver`, both counted from 0."""

    sender: Count
    receiver: Count
    latency_ms: Amount | None = None
    output_batch_ms: Amount | None = None
    emitted: Amount | None = None
    queue: QueueStats | None = None


class KeyGroupStats(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One group of keys of a task that receives by key: what it had to do, and the size of its state."""

    group: Count
    processed: Amount | None = None
    useful_s: Amount | None = None
    state_bytes: Amount | None = None


class KeySpanStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Groups of keys in a row, `first` to `last`, that one replica owns, and what they had to do together."""

    first: Count
    last: Count
    replica: Count
    processed: Amount | None = None


class ExecutorStats(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One executor.

    `cores` are those of its machine, `cores_used` what its workers kept busy, `java_cores_used` its Java;
    `slots` are the tasks of Spark that it may run at a time. The memory is that of all its processes.
    """

    cores: Amount | None = None
    cores_used: Amount | None = None
    java_cores_used: Amount | None = None
    slots: Count | None = None
    slots_used: Count | None = None
    memory_bytes: Amount | None = None


class CommitStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Commits by epoch marks: the last one there was, and how many came in the interval.

    `age_s` is how long it was ago when the interval ended, `took_ms` from its order until it was in the log.
    `void` epochs were left out; a rollback is a start at the last commit, since the flow could not go on.
    """

    epoch: Count | None = None
    age_s: Amount | None = None
    took_ms: Amount | None = None
    committed: Count = 0
    void: Count = 0
    rollbacks: Count = 0


class TaskStats(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One task. `max` of None means that the task may grow without a limit of its own.

    Without `chain` it must not share a process with another task.
    """

    kind: Kind
    parallelism: Replicas
    min: Replicas = 1
    max: Replicas | None = None
    pool: Replicas | None = None
    elastic: bool = False
    chain: bool = True
    rate_total: Amount | None = None
    service_ms: Amount | None = None
    service_cv: Amount | None = None
    interarrival_ms: Amount | None = None
    interarrival_cv: Amount | None = None
    queue_wait_ms: Amount | None = None
    queue_wait_max_ms: Amount | None = None
    latency_ms: Amount | None = None
    latency_kind: LatencyKind | None = None
    lag_ms: Amount | None = None
    lag_items: Amount | None = None
    catch_up_s: Positive | None = None
    watermark_lag_ms: Amount | None = None
    utilization: Amount | None = None
    utilization_max: Amount | None = None
    cpu: Amount | None = None
    processed_total: Amount | None = None
    emitted_total: Amount | None = None
    useful_s: Amount | None = None
    instances: list[InstanceStats] | None = None
    backlog_total: Amount | None = None
    baseline_service_ms: Amount | None = None
    worker: list[str] | None = None
    key_groups: list[KeyGroupStats] | None = None
    key_table: list[KeySpanStats] | None = None
    state_bytes: Amount | None = None

    def heaviest_groups(self, most: int) -> list[tuple[int, float]]:
        """The groups of keys with the most items, and their share of all; none if that was not measured."""
        counts = {one.group: one.processed for one in self.key_groups or () if one.processed}
        known = max(sum(counts.values()), self.processed_total or 0.0)
        heavy = sorted(counts.items(), key=lambda pair: -pair[1])[:most]
        return [(group, count / known) for group, count in heavy]

    def within_limits(self, replicas: int) -> int:
        """The nearest number of replicas between `min` and `max`."""
        raised = max(replicas, self.min)
        return raised if self.max is None else min(raised, self.max)


class StreamStats(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"origin": "from", "receiver": "to"},
):
    """One stream. `origin` is a task, or `task.output` when the task has several named outputs."""

    origin: str
    receiver: str
    wiring: Wiring = "round_robin"
    latency_ms: Amount | None = None
    output_batch_ms: Amount | None = None
    batch_lifetime_ms: Amount | None = None
    emitted_total: Amount | None = None
    queue: QueueStats | None = None
    channels: list[ChannelStats] | None = None

    @property
    def sender(self) -> str:
        """The task that sends, without the name of its output."""
        return self.origin.partition(".")[0]

    @property
    def name(self) -> str:
        """How constraints and decisions call this stream."""
        return f"{self.origin}{ARROW}{self.receiver}"


class ConstraintSpec(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """An upper bound on the latency of a sequence of connected tasks and streams (thesis, section 4.2).

    `share` is the share of intervals in which it is to be held; None leaves that to the policy.
    What is no part of the bound is what was seen, for those who look at the run later: `p95_ms` and `p99_ms`
    of the interval, of so many `samples`, of which so many were `late`, over the bound of a percentile;
    `mean_ms` over the last `window_s` seconds, and whether that was `held`.
    """

    name: str
    sequence: list[str]
    latency_ms: Positive
    statistic: str = "mean"
    window_s: Positive | None = None
    p95_ms: Amount | None = None
    p99_ms: Amount | None = None
    samples: Count | None = None
    late: Count | None = None
    mean_ms: Amount | None = None
    held: bool | None = None
    share: Share | None = None

    def tasks(self) -> list[str]:
        """The tasks of the sequence, in order."""
        return [element for element in self.sequence if ARROW not in element]

    def streams(self) -> list[str]:
        """The streams of the sequence, in order."""
        return [element for element in self.sequence if ARROW in element]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A flow as it was in one interval."""

    version: Literal[2] = 2
    interval_s: Positive
    tasks: dict[str, TaskStats]
    streams: list[StreamStats] = []
    constraints: list[ConstraintSpec] = []
    chains: list[list[str]] = []
    cores_used: Amount | None = None
    cores_leased: Amount | None = None
    executors: dict[str, ExecutorStats] | None = None
    commits: CommitStats | None = None

    def streams_into(self, task: str) -> list[StreamStats]:
        """The streams that `task` receives."""
        return [stream for stream in self.streams if stream.receiver == task]

    def streams_out_of(self, task: str) -> list[StreamStats]:
        """The streams that `task` sends."""
        return [stream for stream in self.streams if stream.sender == task]

    def stream(self, name: str) -> StreamStats:
        """The stream called `name`, for example "a->b"."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        raise KeyError(name)

    def elastic_tasks(self, *, sources: bool = True) -> dict[str, TaskStats]:
        """The tasks whose number of replicas may change; sources, which take a boundary for it, or not."""
        return {
            name: task
            for name, task in self.tasks.items()
            if task.elastic and (sources or task.kind != "source")
        }

    def topological_order(self) -> list[str]:
        """Every task after all tasks that send to it; ties stay in the order of `tasks`."""
        waiting = {name: {s.sender for s in self.streams_into(name)} for name in self.tasks}
        order: list[str] = []
        while waiting:
            ready = [name for name, senders in waiting.items() if senders.isdisjoint(waiting)]
            if not ready:
                raise SnapshotError(f"streams: tasks {_cycle(waiting)} form a cycle; a flow has none")
            for name in ready:
                del waiting[name]
            order.extend(ready)
        return order


def _cycle(senders: dict[str, set[str]]) -> str:
    """The names of one cycle: from a task that waits, back along senders that wait, until one comes again."""
    path = [next(iter(senders))]
    while path[-1] not in path[:-1]:
        path.append(next(name for name in senders[path[-1]] if name in senders))
    return ", ".join(repr(name) for name in sorted(set(path[path.index(path[-1]) :])))
