"""A flow as the choice sees it: its queues and bounds, from a snapshot and what was learnt."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.policy.measured import finite, sequence_latency_ms
from penstock.policy.penstock.capacity import Scalability
from penstock.policy.penstock.choice import Bound, Queue
from penstock.policy.penstock.counted import Ratio, copies
from penstock.policy.penstock.demand import CAREFUL_TIMES, TIMES, draining, within_s
from penstock.policy.penstock.luck import Luck
from penstock.policy.penstock.memory import Memory
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.seen import MANY
from penstock.policy.penstock.servers import (
    Server,
    UnknownError,
    is_left_over,
    queues_of,
    servers,
    service_cv2,
    service_s,
    slacks_ms,
)
from penstock.policy.penstock.tails import tail_of
from penstock.policy.penstock.waiting import Arrivals, Fit, Wait
from penstock.stats.snapshot import Snapshot, StreamStats


@dataclass(frozen=True)
class Model:
    """Of a snapshot, after what was learnt from it."""

    snapshot: Snapshot
    memory: Memory
    parameters: PenstockParameters

    @cached_property
    def servers(self) -> dict[str, Server]:
        """Tasks with a queue of their own."""
        return servers(self.snapshot)

    @cached_property
    def _fixed_ms(self) -> dict[str, float]:
        return self.memory.fixed_ms

    @cached_property
    def _slacks_ms(self) -> dict[str, float]:
        return slacks_ms(self.snapshot, self.servers, self._fixed_ms)

    @property
    def _times(self) -> float:
        return TIMES if self.memory.prices.are_cheap(self.snapshot.interval_s) else CAREFUL_TIMES

    def waits(self, demands: Mapping[str, float]) -> dict[str, Wait]:
        """Of every server that something comes to."""
        found = {}
        for name, server in self.servers.items():
            if name not in demands:
                raise UnknownError(f"what comes to {name!r} is not known yet")
            if demands[name] > 0.0:
                found[name] = self._wait(server, demands[name])
        return found

    @cached_property
    def _made(self) -> dict[str, Wait]:
        """Those that were made before, for any rate."""
        return {}

    def _wait(self, server: Server, rate_per_s: float) -> Wait:
        made = self._made.get(server.name)
        if made is None:
            made = self._made[server.name] = self._first_wait(server, rate_per_s)
        return made if made.rate_per_s == rate_per_s else replace(made, rate_per_s=rate_per_s)

    def _first_wait(self, server: Server, rate_per_s: float) -> Wait:
        name, counts = server.name, self.memory.counts
        scalability = self.memory.scalability.get(name, Scalability())
        return Wait(
            service_ms=1000.0 * service_s(server, counts),
            service_cv2=service_cv2(server, counts),
            rate_per_s=rate_per_s,
            arrivals=self._arrivals(name) if self.parameters.waiting == "on" else None,
            cv2=counts.arrival_cv2(name),
            copied=self._copied(name),
            now=self.snapshot.tasks[name].parallelism,
            exponent=scalability.exponent if self.parameters.capacity == "on" else 0.0,
            fit=self.memory.fits.get(name, Fit()),
            interval_s=self.snapshot.interval_s,
        )

    def _arrivals(self, name: str) -> Arrivals:
        counts, task = self.memory.counts, self.snapshot.tasks[name]
        streams = self.snapshot.streams_into(name)
        weights = self._weights(streams)
        whole = math.fsum(weights)
        rate = (finite(task.processed_total) or 0.0) / self.snapshot.interval_s
        dealt = senders = per_lifetime = 0.0
        for stream, weight in zip(streams, weights, strict=True):
            share = weight / whole
            dealt += share * (stream.wiring == "round_robin")
            senders += share * self.snapshot.tasks[stream.sender].parallelism
            per_lifetime += share * rate * (finite(stream.batch_lifetime_ms) or 0.0) / 1000.0
        return Arrivals(counts.arrival_cv2(name), task.parallelism, dealt, senders, per_lifetime)

    def _copied(self, name: str) -> float:
        """The share of what comes to a task that each of its replicas gets."""
        streams = self.snapshot.streams_into(name)
        weights = self._weights(streams)
        copied = (
            weight for stream, weight in zip(streams, weights, strict=True) if stream.wiring == "broadcast"
        )
        return math.fsum(copied) / math.fsum(weights) if weights else 0.0

    def _weights(self, streams: Sequence[StreamStats]) -> list[float]:
        """Items of each, of late."""
        becomes = self.memory.counts.becomes
        return [copies(self.snapshot, one) * becomes.get(one.name, Ratio()).above or 1e-9 for one in streams]

    def queues(self, waits: Mapping[str, Wait], expected: Mapping[str, float]) -> dict[str, Queue]:
        """With their limits, and what drains them; a backlog counts with what is expected to come."""
        found = {}
        for name, wait in waits.items():
            task = self.snapshot.tasks[name]
            least = task.min
            work_s = self._left_over_s(name, wait, expected[name])
            if work_s > 0.0:
                busy = replace(wait, rate_per_s=expected[name]).busy(task.parallelism)
                least = max(least, draining(busy, work_s, self.parameters.drain_s, self._times))
            found[name] = Queue(wait, task.within_limits(least), task.max)
        return found

    def drained_per_s(self, expected: Mapping[str, float]) -> dict[str, float]:
        """What tasks with more than a queue send on top, while they drain it."""
        found = {}
        waiting = [name for name in self.servers if self.snapshot.tasks[name].backlog_total]
        for name in waiting:
            if not expected.get(name):
                continue
            wait = self._wait(self.servers[name], expected[name])
            work_s = self._left_over_s(name, wait, expected[name])
            if work_s > 0.0:
                within = within_s(work_s, self.parameters.drain_s, self._times)
                found[name] = (self.snapshot.tasks[name].backlog_total or 0.0) / within
        return found

    def _left_over_s(self, name: str, wait: Wait, expected_per_s: float) -> float:
        """Seconds of work before a replica that are more than a queue, when a change takes effect.

        They are with the replicas that were there when the backlog began.
        """
        task = self.snapshot.tasks[name]
        if not is_left_over(task, wait.service_ms, self._slacks_ms[name]):
            return 0.0
        holders = min(self.memory.holders.get(name, MANY), task.parallelism)
        work_s = (task.backlog_total or 0.0) * wait.service_ms / 1000.0 / holders
        grows = expected_per_s * wait.service_ms / 1000.0 / task.parallelism - 1.0
        return work_s + (self.memory.prices.delay_s or 0.0) * max(0.0, grows)

    def bounds(self, waits: Mapping[str, Wait], sigmas: Mapping[str, float], slack: float) -> list[Bound]:
        """With their margins; waits count `slack` times as much for changes that only save."""
        memory, found = self.memory, []
        for one in self.snapshot.constraints:
            if one.name not in self._fixed_ms:
                raise UnknownError(f"the latency of {one.name} was not measured yet")
            queues = queues_of(self.snapshot, one, self.servers)
            found.append(
                Bound(
                    one.name,
                    self._fixed_ms[one.name],
                    tuple(name for name in queues if name in waits),
                    one.latency_ms,
                    slack * tail_of(one, memory.tails),
                    sigmas[one.name] * memory.lucks.get(one.name, Luck()).factor,
                    memory.margins[one.name].factor,
                )
            )
        return found

    def lucks(self, came: Mapping[str, float]) -> dict[str, Luck]:
        """After this interval, in which so much came: what was predicted for it against what was measured."""
        found = dict(self.memory.lucks)
        waits = self.waits(came)
        for one in self.snapshot.constraints:
            measured_ms = sequence_latency_ms(self.snapshot, one)
            if measured_ms is None or one.name not in self._fixed_ms:
                continue
            through = [
                waits[name].wait_ms(self.snapshot.tasks[name].parallelism)
                for name in queues_of(self.snapshot, one, self.servers)
                if name in waits
            ]
            predicted_ms = self._fixed_ms[one.name] + math.fsum(wait_ms for wait_ms, _ in through)
            luck_ms = math.sqrt(math.fsum(luck * luck for _, luck in through))
            found[one.name] = found.get(one.name, Luck()).then(measured_ms, predicted_ms, luck_ms)
        return found
