"""Where an item's time goes between two tasks, from the tags that sampled items carry (section 4.4.1).

    emitted -> shipped -> arrived -> entered
       batching    transport    queue           and channel latency is all of it, emitted -> entered

The sender chooses the items to tag, the receiver does the sums. All times are of one clock: if sender and
receiver run on different machines, the caller has set them right (`clock_offset`).
"""

import msgspec

from penstock.stats.moments import Moments, moments_of
from penstock.stats.task_latency import NS_PER_MS


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
    """Collects the times of the tagged items of one channel; sums are made when an interval ends."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[tuple[int, int, int, int]] = []

    def entered(self, emitted_ns: int, shipped_ns: int, arrived_ns: int, entered_ns: int) -> None:
        """A tagged item has entered the receiving task."""
        self._items.append((emitted_ns, shipped_ns, arrived_ns, entered_ns))

    def take(self) -> ChannelMoments:
        """The interval's times."""
        items, self._items = self._items, []
        return ChannelMoments(
            moments_of([_between_ms(emitted, entered) for emitted, _, _, entered in items]),
            moments_of([_between_ms(emitted, shipped) for emitted, shipped, _, _ in items]),
            moments_of([_between_ms(shipped, arrived) for _, shipped, arrived, _ in items]),
            moments_of([_between_ms(arrived, entered) for _, _, arrived, entered in items]),
        )


def _between_ms(begin_ns: int, end_ns: int) -> float:
    """Never negative: clocks that were set right may still be off by a little."""
    return max(0, end_ns - begin_ns) / NS_PER_MS
