"""Where an item's time goes between two tasks, from the tags that sampled items carry (section 4.4.1).

    emitted -> shipped -> arrived -> entered
       batching    transport    queue           and channel latency is all of it, emitted -> entered

The sender chooses the items to tag, the receiver does the sums. If the two run on different machines, the
caller passes by how much the sender's clock is ahead.
"""

from typing import NamedTuple

import msgspec

from penstock.stats.moments import Moments, OnlineMoments
from penstock.stats.task_latency import NS_PER_MS


class Tag(NamedTuple):
    """What a sampled item carries: when it left the sending task, and when its envelope was shipped."""

    emitted_ns: int
    shipped_ns: int


class ChannelMoments(msgspec.Struct, frozen=True):
    """The times of one channel in one interval, in ms."""

    latency_ms: Moments = Moments()
    output_batch_ms: Moments = Moments()
    transport_ms: Moments = Moments()
    queue_wait_ms: Moments = Moments()

    def merged(self, later: "ChannelMoments") -> "ChannelMoments":
        """This interval and a later one of the same channel."""
        return ChannelMoments(
            self.latency_ms.merged(later.latency_ms),
            self.output_batch_ms.merged(later.output_batch_ms),
            self.transport_ms.merged(later.transport_ms),
            self.queue_wait_ms.merged(later.queue_wait_ms),
        )


class ChannelTimes:
    """Collects the times of the tagged items of one channel."""

    __slots__ = ("_batch_ms", "_latency_ms", "_queue_ms", "_transport_ms")

    def __init__(self) -> None:
        self._latency_ms = OnlineMoments()
        self._batch_ms = OnlineMoments()
        self._transport_ms = OnlineMoments()
        self._queue_ms = OnlineMoments()

    def entered(self, tag: Tag, arrived_ns: int, entered_ns: int, sender_ahead_ns: int = 0) -> None:
        """A tagged item is about to enter the receiving task."""
        emitted_ns, shipped_ns = tag.emitted_ns - sender_ahead_ns, tag.shipped_ns - sender_ahead_ns
        self._latency_ms.add(_between_ms(emitted_ns, entered_ns))
        self._batch_ms.add(_between_ms(emitted_ns, shipped_ns))
        self._transport_ms.add(_between_ms(shipped_ns, arrived_ns))
        self._queue_ms.add(_between_ms(arrived_ns, entered_ns))

    def take(self) -> ChannelMoments:
        """The interval's times."""
        return ChannelMoments(
            self._latency_ms.take(), self._batch_ms.take(), self._transport_ms.take(), self._queue_ms.take()
        )


def _between_ms(begin_ns: int, end_ns: int) -> float:
    """Never negative: clocks that were corrected may still be off by a little."""
    return max(0, end_ns - begin_ns) / NS_PER_MS
