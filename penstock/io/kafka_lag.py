"""How far a reader of a partition is behind what the broker has.

With every fetch the broker says where the partition ends. A client that has fetched much, and is read slowly,
fetches no more for a while: then what arrives meanwhile would not be seen, so the broker is asked.
"""

import time
from collections.abc import Callable
from typing import Any, Final

_UNSEEN: Final = -1001
_STALE_S: Final = 1.0
# Reading waits for the answer. A broker that takes longer is asked again only when this is long ago.
_ANSWER_WITHIN_S: Final = 0.2
_UNANSWERED_S: Final = 10.0


class PartitionEnd:
    """The offset that the next record of a partition will have, asked for once a second while needed."""

    def __init__(self, consumer: Any, place: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer, self._place, self._clock = consumer, place, clock
        self._told = _UNSEEN
        self._asked = _UNSEEN
        self._fresh_until_s = clock() + _STALE_S

    def lag_items(self, offset: int) -> int | None:
        """How many records are there from this offset on; None before the broker has said anything."""
        told = self._cached()
        if told != self._told:
            self._told = told
            self._fresh_until_s = self._clock() + _STALE_S
        # Who has read all that was said has a fetch open, and hears of more at once.
        elif max(told, self._asked) > offset and self._clock() >= self._fresh_until_s:
            self._ask()
        high = max(told, self._asked)
        return None if high == _UNSEEN else max(0, high - offset)

    def _cached(self) -> int:
        from confluent_kafka import KafkaException

        try:
            _, high = self._consumer.get_watermark_offsets(self._place, cached=True)
        except KafkaException:
            return _UNSEEN
        return int(high)

    def _ask(self) -> None:
        from confluent_kafka import KafkaException

        try:
            answer = self._consumer.get_watermark_offsets(self._place, timeout=_ANSWER_WITHIN_S)
        except KafkaException:
            answer = None
        if answer is None:  # as it says that the time is over
            self._fresh_until_s = self._clock() + _UNANSWERED_S
            return
        self._asked = int(answer[1])
        self._fresh_until_s = self._clock() + _STALE_S
