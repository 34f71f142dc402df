"""The receivers of a stream by key group, and how many items each group was sent."""

import heapq
from collections.abc import Sequence
from typing import Generic, TypeVar

from penstock.stats.key_load import HEAVIEST, SLICE, KeyLoad
from penstock.wire.divisions import Division
from penstock.wire.keys import KEY_GROUPS

C = TypeVar("C")


class ByKey(Generic[C]):
    """Of a stream at its sender. The task's thread counts; the control line takes what was counted.

    Both are single steps without a lock: an item that is counted while the list is taken may be missed.
    """

    __slots__ = ("channels", "counts")

    def __init__(self) -> None:
        self.channels: Sequence[C] = ()
        """The receiver of each group."""
        self.counts: list[int] = []

    def divide(self, pool: Sequence[C], division: Division) -> None:
        """From the next item on."""
        channels: list[C] = []
        for span in division.spans:
            channels += [pool[span.replica]] * (span.last + 1 - span.first)
        self.counts = self.counts or [0] * KEY_GROUPS
        self.channels = channels

    def take(self) -> KeyLoad:
        """What was counted since the last call: the heaviest groups, and sums of many in a row."""
        counts, self.counts = self.counts, [0] * KEY_GROUPS
        slices = [sum(counts[first : first + SLICE]) for first in range(0, KEY_GROUPS, SLICE)]
        if not any(slices):
            return KeyLoad()
        busy = [group for group, count in enumerate(counts) if count]
        heaviest = heapq.nlargest(HEAVIEST, busy, key=counts.__getitem__)
        return KeyLoad(groups={group: counts[group] for group in heaviest}, slices=slices)
