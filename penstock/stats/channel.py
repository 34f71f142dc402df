"""Where an item's time goes between two tasks, from the tags that sampled items carry (section 4.4.1).

    emitted -> shipped -> arrived -> entered
       batching    transport    queue           and channel latency is all of it, emitted -> entered

The sender chooses the items to tag, the receiver does the sums. All times are of one clock: if sender and
receiver run on different machines, the caller has set them right (`clock_offset`).
"""

from collections.abc import Iterable

import msgspec

from penstock.stats.moments import Moments, moments_of_ns


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


Passage = tuple[int, int, int, int]
"""When a tagged item was emitted, shipped, arrived and entered, in ns."""


def channel_moments(passages: Iterable[Passage]) -> ChannelMoments:
    """The times of the tagged items of one channel in one interval."""
    emitted, shipped, arrived, entered = tuple(zip(*passages, strict=True)) or ((), (), (), ())
    return ChannelMoments(
        moments_of_ns([end - begin for begin, end in zip(emitted, entered, strict=True)]),
        moments_of_ns([end - begin for begin, end in zip(emitted, shipped, strict=True)]),
        moments_of_ns([end - begin for begin, end in zip(shipped, arrived, strict=True)]),
        moments_of_ns([end - begin for begin, end in zip(arrived, entered, strict=True)]),
    )
