"""What is simulated: tasks, streams, constraints, and the cluster they run on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from penstock.sim.distributions import Deterministic, Distribution, Exponential
from penstock.sim.load import Curve

if TYPE_CHECKING:
    from penstock.stats.snapshot import ConstraintSpec

Kind = Literal["source", "task", "sink"]
Wiring = Literal["round_robin", "key", "broadcast", "forward"]
LatencyKind = Literal["read_ready", "read_write"]


class ModelError(ValueError):
    """A flow model that makes no sense; the message names the task or stream."""


@dataclass(frozen=True, slots=True)
class TaskModel:
    """A task: its replicas, its service time, and where they run.

    A source follows `load`, with `gaps` between items; one that does not catch up never makes the items that
    it could not emit in time (a generator under back-pressure), others emit them late (a log). `every_s`
    makes the task emit once per window instead of per item; `group` once for so many items. `queue_items`
    bounds the queue of a replica (None: unbounded). Replicas of a `site` share workers, `per_worker` of this
    task on each. Without `chain` it keeps a process of its own. `catch_up_s` is the time in which a source
    wants what is due and not emitted to be drained.
    """

    name: str
    kind: Kind = "task"
    replicas: int = 1
    minimum: int | None = None
    maximum: int | None = None
    service_s: float = 0.0
    service: Distribution = field(default_factory=Deterministic)
    load: Curve | None = None
    gaps: Distribution = field(default_factory=Exponential)
    catches_up: bool = True
    every_s: float | None = None
    group: int = 1
    latency: LatencyKind = "read_ready"
    queue_items: int | None = None
    site: str = "cluster"
    per_worker: int = 1
    chain: bool = True
    catch_up_s: float | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        low = self.replicas if self.minimum is None else self.minimum
        return low, max(low, self.replicas if self.maximum is None else self.maximum)

    @property
    def aggregates(self) -> bool:
        """Whether it emits for windows or groups, so that its read-write latency is not its service time."""
        return self.every_s is not None or self.group > 1

    @property
    def elastic(self) -> bool:
        return self.bounds[0] < self.bounds[1]


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU time that a stream costs its sender and receiver, and the time an envelope travels."""

    send_envelope_s: float = 0.0
    send_item_s: float = 0.0
    receive_envelope_s: float = 0.0
    receive_item_s: float = 0.0
    transport_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys drawn from a Zipf distribution, dealt to receivers by number."""

    count: int
    exponent: float


@dataclass(frozen=True, slots=True)
class StreamModel:
    """A stream. `ratio` is how many items it carries per item its sender finishes.

    With `only_via`, only items that came by that stream into the sender count for the ratio. `limit_items`
    is how many items fill an envelope. `together`: a sender has one timer for all its channels, as on Spark,
    and not one for each, as in Nephele; envelopes then have no limit. `paused`: that sender is a source
    which looks for items a few times in a lifetime (`penstock.io.pauses`).
    """

    sender: str
    receiver: str
    wiring: Wiring = "round_robin"
    lifetime_ms: float = 0.0
    limit_items: int | None = None
    together: bool = False
    paused: bool = False
    ratio: Curve = field(default_factory=lambda: Curve.constant(1.0))
    only_via: str | None = None
    costs: Costs = field(default_factory=Costs)
    keys: Keys | None = None

    @property
    def name(self) -> str:
        return f"{self.sender}->{self.receiver}"


@dataclass(frozen=True, slots=True)
class ClusterModel:
    """The machines, and what changing the flow takes.

    With `restart_s` every change of parallelism stops the whole flow for that long (Flink's savepoint,
    Storm's rebalance); with `restart_loses` what is inside goes on instead and what arrives meanwhile is
    lost, as Storm's rebalance lets in-flight tuples finish while its spouts stand still. Otherwise replicas
    are added while the flow runs, `replica_start_s` after the decision, plus `worker_start_s` if a worker is
    new. `idle_cores` is what an idle replica costs. `threads_per_core` is how much more a core does with
    hyper-threading than without.
    """

    cores_per_worker: float = 4.0
    threads_per_core: float = 1.0
    replica_start_s: float = 0.0
    worker_start_s: float = 0.0
    restart_s: float | None = None
    restart_loses: bool = False
    idle_cores: float = 0.0


@dataclass(frozen=True, slots=True)
class FlowModel:
    """A whole flow to be simulated, with the interval at which it is observed."""

    name: str
    tasks: tuple[TaskModel, ...]
    streams: tuple[StreamModel, ...]
    constraints: tuple[ConstraintSpec, ...] = ()
    cluster: ClusterModel = field(default_factory=ClusterModel)
    interval_s: float = 5.0
    step_s: float = 1.0
    step_items: int = 300_000
    seconds: float = 60.0

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        if len(set(names)) != len(names):
            raise ModelError(f"flow {self.name!r}: two tasks have the same name")
        for stream in self.streams:
            for end in (stream.sender, stream.receiver):
                if end not in names:
                    raise ModelError(f"stream {stream.name!r}: there is no task {end!r}")
            if names.index(stream.sender) >= names.index(stream.receiver):
                raise ModelError(
                    f"stream {stream.name!r}: list task {stream.sender!r} before {stream.receiver!r}"
                )
            if stream.wiring == "key" and stream.keys is None:
                raise ModelError(f"stream {stream.name!r}: wiring key needs `keys`")
            if stream.wiring == "forward":
                ends = [self.task(end) for end in (stream.sender, stream.receiver)]
                if ends[0].replicas != ends[1].replicas or ends[0].elastic or ends[1].elastic:
                    raise ModelError(
                        f"stream {stream.name!r}: forward needs tasks of the same fixed number of replicas"
                    )
        for task in self.tasks:
            if (task.kind == "source") != (task.load is not None):
                raise ModelError(f"task {task.name!r}: a source, and only a source, has a load")
            if not task.bounds[0] <= task.replicas <= task.bounds[1]:
                raise ModelError(
                    f"task {task.name!r}: starts with {task.replicas} replicas, outside "
                    f"{task.bounds[0]}..{task.bounds[1]}"
                )

    def task(self, name: str) -> TaskModel:
        return next(task for task in self.tasks if task.name == name)

    def inputs_of(self, task: str) -> list[StreamModel]:
        return [stream for stream in self.streams if stream.receiver == task]

    def outputs_of(self, task: str) -> list[StreamModel]:
        return [stream for stream in self.streams if stream.sender == task]

    def pipelines(self) -> list[list[str]]:
        """Runs of tasks joined one-to-one by forward streams: what may be chained."""
        runs: list[list[str]] = []
        for task in self.tasks:
            inputs = self.inputs_of(task.name)
            joined = None
            if task.kind == "task" and len(inputs) == 1 and inputs[0].wiring == "forward":
                sender = inputs[0].sender
                alone = len(self.outputs_of(sender)) == 1 and task.chain and self.task(sender).chain
                joined = next((run for run in runs if run[-1] == sender), None) if alone else None
            if joined is not None:
                joined.append(task.name)
            elif task.kind == "task":
                runs.append([task.name])
        return [run for run in runs if len(run) > 1]
