"""What comes to a task since something changed within the interval, as its queue tells.

The mean of an interval in which more begins to come lies between what came before and what comes now, and a
choice by that mean is a step too small. But a queue is first in, first out: all that has come to a replica
since its oldest item is in there, so

    rate = (1 - 1 / sqrt(N)) sum over the replicas of n / a     n items wait, the oldest of them for a seconds

less a standard deviation of luck, where N envelopes wait in all (items, if nobody counts envelopes). This is
asked where more came in the interval than in the one before by more than luck; not of queues younger than a
twentieth of the interval, and not while a source catches up, which sends at once what it owes.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from penstock.policy.measured import finite
from penstock.policy.penstock.demand import owed_per_s
from penstock.policy.penstock.forecast import is_luck
from penstock.stats.snapshot import QueueStats, Snapshot

_YOUNG = 0.05


def onsets_per_s(snapshot: Snapshot, last: Snapshot | None) -> Mapping[str, float]:
    """By task, of those to which more has begun to come."""
    if last is None or owed_per_s(snapshot, snapshot.interval_s):
        return {}
    found = {}
    for name in snapshot.elastic_tasks():
        before, now = _came_per_s(last, name), _came_per_s(snapshot, name)
        if before is None or now is None or now <= before or is_luck(now, before, snapshot.interval_s):
            continue
        rate = _rate_per_s(snapshot, name)
        if rate > now:
            found[name] = rate
    return found


def _came_per_s(snapshot: Snapshot, task: str) -> float | None:
    counts = [finite(stream.emitted_total) for stream in snapshot.streams_into(task)]
    known = [count for count in counts if count is not None]
    return math.fsum(known) / snapshot.interval_s if counts and len(known) == len(counts) else None


@dataclass(frozen=True, slots=True)
class _Waiting:
    items: float = 0.0
    envelopes: float = 0.0
    age_ms: float = 0.0

    def and_then(self, queue: QueueStats | None) -> "_Waiting":
        if queue is None:
            return self
        items = finite(queue.items) or 0.0
        envelopes = items if queue.envelopes is None else queue.envelopes
        return _Waiting(
            self.items + items, self.envelopes + envelopes, max(self.age_ms, finite(queue.age_ms) or 0.0)
        )


def _rate_per_s(snapshot: Snapshot, task: str) -> float:
    """0 where its queue tells nothing."""
    young_ms = 1000.0 * _YOUNG * snapshot.interval_s
    told = [one for one in _waiting(snapshot, task) if one.age_ms > young_ms]
    envelopes = math.fsum(one.envelopes for one in told)
    if envelopes < 1.0:
        return 0.0
    return (1.0 - 1.0 / math.sqrt(envelopes)) * math.fsum(1000.0 * one.items / one.age_ms for one in told)


def _waiting(snapshot: Snapshot, task: str) -> Iterable[_Waiting]:
    """By replica where that is known; else all of them together."""
    streams = snapshot.streams_into(task)
    if any(stream.channels for stream in streams):
        found: dict[int | None, _Waiting] = {}
        for stream in streams:
            for channel in stream.channels or []:
                before = found.get(channel.receiver, _Waiting())
                found[channel.receiver] = before.and_then(channel.queue)
        return found.values()
    return [reduce(_Waiting.and_then, (stream.queue for stream in streams), _Waiting())]
