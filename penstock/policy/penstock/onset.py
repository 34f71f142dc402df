"""What comes to a task since something changed within the interval, as its queue tells.

The mean of an interval in which more begins to come lies between what came before and what comes now, and a
choice by that mean is a step too small. But a queue is first in, first out: all that has come to a replica
since its oldest item is in there, so

    rate = sum over the replicas of (n - sqrt(n)) / a        n items wait, the oldest of them for a seconds

sqrt(n) is a standard deviation of luck. This is asked where more came in the interval than in the one before
by more than luck; not of queues younger than a tenth of the interval, which may be a few envelopes, and not
while a source catches up, which sends at once what it owes.
"""

import math
from collections.abc import Iterable, Mapping

from penstock.policy.measured import finite
from penstock.policy.penstock.demand import owed_per_s
from penstock.policy.penstock.forecast import is_luck
from penstock.stats.snapshot import QueueStats, Snapshot

_YOUNG = 0.1


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


def _rate_per_s(snapshot: Snapshot, task: str) -> float:
    """0 where its queue tells nothing."""
    young_ms = 1000.0 * _YOUNG * snapshot.interval_s
    return math.fsum(
        (items - math.sqrt(items)) / age_ms * 1000.0
        for items, age_ms in _queues(snapshot, task)
        if age_ms > young_ms
    )


def _queues(snapshot: Snapshot, task: str) -> Iterable[tuple[float, float]]:
    """Items and the age of the oldest, by replica where that is known; else of all of them together."""
    streams = snapshot.streams_into(task)
    if any(stream.channels for stream in streams):
        found: dict[int | None, tuple[float, float]] = {}
        for stream in streams:
            for channel in stream.channels or []:
                before = found.get(channel.receiver, (0.0, 0.0))
                found[channel.receiver] = _joined(before, channel.queue)
        return found.values()
    whole = (0.0, 0.0)
    for stream in streams:
        whole = _joined(whole, stream.queue)
    return [whole]


def _joined(one: tuple[float, float], queue: QueueStats | None) -> tuple[float, float]:
    if queue is None:
        return one
    return one[0] + (finite(queue.items) or 0.0), max(one[1], finite(queue.age_ms) or 0.0)
