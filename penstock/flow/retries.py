"""How often a body is asked again after an exception, and how long to wait before."""

from dataclasses import dataclass

from penstock.durations import Duration, DurationError, format_ms, milliseconds
from penstock.flow.errors import FlowError

_FIRST_MS = 100.0
_LONGEST_MS = 10_000.0
_MOST_DOUBLINGS = 60  # beyond it no pause is short of `longest`


@dataclass(frozen=True, slots=True)
class Retries:
    """At most `times` further tries after one of the exceptions `on`, with pauses that double."""

    times: int
    first_ms: float = _FIRST_MS
    longest_ms: float = _LONGEST_MS
    on: tuple[type[Exception], ...] = (Exception,)

    def allow(self, problem: Exception, tried: int) -> bool:
        """Whether to try again after so many tries, the last of which ended with `problem`."""
        return tried <= self.times and isinstance(problem, self.on)

    def pause_ms(self, tried: int) -> float:
        """The longest pause after so many tries: first * 2^(tried - 1), at most `longest`."""
        return min(self.longest_ms, self.first_ms * 2.0 ** min(tried - 1, _MOST_DOUBLINGS))

    def __str__(self) -> str:
        only = "" if self.on == (Exception,) else f" on {', '.join(kind.__name__ for kind in self.on)}"
        return f"{self.times}{only}, after {format_ms(self.first_ms)} up to {format_ms(self.longest_ms)}"


def retry(
    times: int,
    *,
    first: Duration = "100 ms",
    longest: Duration = "10 s",
    on: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> Retries:
    """At most `times` further tries for an item whose body raised one of the exceptions `on`.

    Before the first of them there is a pause of up to `first`, and each pause is twice as long as the one
    before, up to `longest`.

    >>> retry(3, first="1 s").pause_ms(2)
    2000.0
    """
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise FlowError(f"retry(...): times must be a whole number of at least 1, not {times!r}")
    kinds = on if isinstance(on, tuple) else (on,)
    for kind in kinds:
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            raise FlowError(f"retry(...): on takes exceptions such as ConnectionError, not {kind!r}")
    if not kinds:
        raise FlowError("retry(...): on is empty; leave it out to try again after any exception")
    first_ms, longest_ms = _checked_ms(first, "first"), _checked_ms(longest, "longest")
    if longest_ms < first_ms:
        raise FlowError(f"retry(...): longest {longest!r} is shorter than first {first!r}; swap the two")
    return Retries(times, first_ms, longest_ms, kinds)


def _checked_ms(value: Duration, what: str) -> float:
    try:
        return milliseconds(value)
    except DurationError as error:
        raise FlowError(f"retry(...): {what}: {error}") from error
