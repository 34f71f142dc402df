"""How far one clock is ahead of another, from questions whose answers carry its times (as in NTP, RFC 5905).

The asker notes when it sent and when the answer was there, the other side when it received and answered:

    ahead = ((sent - received) + (returned - answered)) / 2
    error = ((returned - sent) - (answered - received)) / 2      half of the time on the way

Whatever the two ways took, the truth lies within `error` of `ahead`. So the exchange that was fastest is the
one to believe. Old ones are forgotten, because clocks drift; and all are when a new one contradicts them, so
that no offset fits both: then a clock has jumped, say because its machine slept.

Processes of one machine share one clock. Those of two machines began when these were switched on, and will
hardly ever agree within a millisecond. So where zero is possible, it is zero.
"""

from collections import deque

import msgspec

REMEMBERED = 16


class Exchange(msgspec.Struct, frozen=True, array_like=True):
    """A question and its answer, in ns: two times of the asker's clock, and two of the other's between."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    returned_ns: int

    @property
    def ahead_ns(self) -> int:
        """By how much the asker's clock is ahead."""
        return (self.sent_ns - self.received_ns + self.returned_ns - self.answered_ns) // 2

    @property
    def error_ns(self) -> int:
        """How wrong that may be, in either direction; one more than half, because halves are rounded."""
        return (self.returned_ns - self.sent_ns - self.answered_ns + self.received_ns) // 2 + 1

    def contradicts(self, other: "Exchange") -> bool:
        """Whether no offset is possible by both."""
        return abs(self.ahead_ns - other.ahead_ns) > self.error_ns + other.error_ns


class ClockOffset:
    """The asker's clock against the other's, by the fastest of the latest exchanges."""

    __slots__ = ("_exchanges",)

    def __init__(self) -> None:
        self._exchanges: deque[Exchange] = deque(maxlen=REMEMBERED)

    def learn(self, exchange: Exchange) -> None:
        """One more exchange; one in which time ran backwards says nothing."""
        if exchange.error_ns <= 0:
            return
        if any(exchange.contradicts(other) for other in self._exchanges):
            self._exchanges.clear()
        self._exchanges.append(exchange)

    @property
    def ahead_ns(self) -> int | None:
        """None before the first exchange: a time of the other clock cannot be told."""
        if not self._exchanges:
            return None
        fastest = min(self._exchanges, key=lambda exchange: exchange.error_ns)
        return 0 if abs(fastest.ahead_ns) <= fastest.error_ns else fastest.ahead_ns
