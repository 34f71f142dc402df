"""What waits in the queues of a flow, by channel, where the shuffle between its tasks can be asked for it."""

from collections.abc import Mapping, Sequence

import msgspec

from penstock.stats.snapshot import ChannelStats, QueueStats, Snapshot, StreamStats
from penstock.wire.reports import QueuedChannel

Waiting = Mapping[tuple[str, int], Sequence[QueuedChannel]]
"""By task and replica."""


def with_queues(snapshot: Snapshot, names: Sequence[str], waiting: Waiting) -> Snapshot:
    """The snapshot with what was found in queues in place of what follows from counts.

    That is so for tasks all of whose replicas have told; others keep what they have. `names` are those of the
    streams, in the order in which envelopes number them. Channels are listed where something waits.
    """
    known = {
        name
        for name, task in snapshot.tasks.items()
        if all((name, replica) in waiting for replica in range(task.parallelism))
    }
    channels: dict[str, list[ChannelStats]] = {}
    for (task, replica), found in waiting.items():
        if task not in known:
            continue
        for one in found:
            queue = QueueStats(items=one.items, envelopes=one.envelopes, bytes=one.bytes, age_ms=one.age_ms)
            channel = ChannelStats(sender=one.sender, receiver=replica, queue=queue)
            channels.setdefault(names[one.stream], []).append(channel)
    streams = [
        _with_channels(stream, channels.get(stream.name, [])) if stream.receiver in known else stream
        for stream in snapshot.streams
    ]
    into = {name: [stream for stream in streams if stream.receiver == name] for name in known}
    tasks = {
        name: msgspec.structs.replace(task, backlog_total=_items(into[name])) if into.get(name) else task
        for name, task in snapshot.tasks.items()
    }
    return msgspec.structs.replace(snapshot, tasks=tasks, streams=streams)


def _with_channels(stream: StreamStats, channels: list[ChannelStats]) -> StreamStats:
    queues = [channel.queue for channel in channels if channel.queue is not None]
    whole = QueueStats(
        items=sum(queue.items or 0 for queue in queues),
        envelopes=sum(queue.envelopes or 0 for queue in queues),
        bytes=sum(queue.bytes or 0 for queue in queues),
        age_ms=max((queue.age_ms or 0.0 for queue in queues), default=0.0),
    )
    listed = sorted(channels, key=lambda channel: (channel.sender, channel.receiver))
    return msgspec.structs.replace(stream, queue=whole, channels=listed or None)


def _items(streams: Sequence[StreamStats]) -> float:
    return sum(stream.queue.items or 0 for stream in streams if stream.queue is not None)
