"""Useful time, and the true and observed rates of a replica (DS2, OSDI 2018, section 3.2).

Useful time W_u is what a replica spends on deserialising, processing and serialising in a window of W
seconds, without any waiting for input or for room in its output:

    true rates       R_processed / W_u, R_emitted / W_u      what it could do if it never waited     (1, 2)
    observed rates   R_processed / W,   R_emitted / W        what it did                             (3, 4)
"""

import msgspec


class InstanceRates(msgspec.Struct, frozen=True, kw_only=True):
    """One replica in one window. A rate without any time to relate to is None, neither 0 nor infinite."""

    window_s: float
    useful_s: float
    processed: int
    emitted: int

    @property
    def true_processing_per_s(self) -> float | None:
        """lambda_p: items processed per second of useful time."""
        return _per_s(self.processed, self.useful_s)

    @property
    def true_output_per_s(self) -> float | None:
        """lambda_o: items emitted per second of useful time."""
        return _per_s(self.emitted, self.useful_s)

    @property
    def useful_ms_per_item(self) -> float | None:
        """1 / lambda_p: the useful time that an item takes."""
        return 1000.0 * self.useful_s / self.processed if self.processed else None

    @property
    def observed_processing_per_s(self) -> float | None:
        """Items processed per second of the window."""
        return _per_s(self.processed, self.window_s)

    @property
    def observed_output_per_s(self) -> float | None:
        """Items emitted per second of the window."""
        return _per_s(self.emitted, self.window_s)

    @property
    def selectivity(self) -> float | None:
        """Items emitted for each item processed."""
        return self.emitted / self.processed if self.processed else None

    def merged(self, other: "InstanceRates") -> "InstanceRates":
        """Two windows of the same replica, one after the other."""
        return InstanceRates(
            window_s=self.window_s + other.window_s,
            useful_s=self.useful_s + other.useful_s,
            processed=self.processed + other.processed,
            emitted=self.emitted + other.emitted,
        )


def _per_s(items: int, time_s: float) -> float | None:
    return items / time_s if time_s > 0 else None
