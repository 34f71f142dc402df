"""A change on trial: what was changed, under which load, and whether it made things worse.

Things are worse when, under the same load, a smaller share of it is delivered than before (DS2, OSDI
2018, section 4.2.2, says that a scaling action that degrades performance is rolled back, and leaves the
measure open). Carrying out a change may itself stop a flow for a while; so an interval in which nothing
was delivered says nothing, and the verdict needs several bad intervals in a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from penstock.policy.keep import current_parallelism
from penstock.policy.load import delivered_share, same_load, source_rates
from penstock.stats.snapshot import Snapshot

# A pause can spoil the interval it begins in and the one it ends in; the third one is the change's own doing.
_CONFIRMATIONS = 3


class Verdict(Enum):
    """What is known about a change."""

    PENDING = "pending"  # not in effect, or bad and not yet confirmed
    UNKNOWN = "unknown"  # overtaken by another change, by another load, or not measured
    GOOD = "good"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Trial:
    """A change of parallelism, how the flow did before it, and bad intervals in a row since."""

    before: Mapping[str, int]
    after: Mapping[str, int]
    rates_per_s: Mapping[str, float]
    share: float | None
    bad_intervals: int = 0

    def judge(
        self, snapshot: Snapshot, tolerance: float, load_tolerance: float, *, otherwise_bad: bool = False
    ) -> tuple[Verdict, "Trial | None"]:
        """The verdict after one more snapshot, and the trial to go on with while it is pending.

        `otherwise_bad` says that the interval was bad for another reason than the share delivered.
        """
        now, share = current_parallelism(snapshot), delivered_share(snapshot)
        if now == self.before or share == 0:
            return Verdict.PENDING, replace(self, bad_intervals=0)
        comparable = now == self.after and same_load(self.rates_per_s, source_rates(snapshot), load_tolerance)
        if not comparable or share is None or self.share is None:
            return Verdict.UNKNOWN, None
        if share >= self.share * (1 - tolerance) and not otherwise_bad:
            return Verdict.GOOD, None
        if self.bad_intervals + 1 >= _CONFIRMATIONS:
            return Verdict.WORSE, None
        return Verdict.PENDING, replace(self, bad_intervals=self.bad_intervals + 1)


def trial_of(snapshot: Snapshot, after: Mapping[str, int]) -> Trial | None:
    """The trial that begins when `after` is issued on `snapshot`; None if it changes nothing."""
    before = current_parallelism(snapshot)
    if before == after:
        return None
    return Trial(before, dict(after), source_rates(snapshot), delivered_share(snapshot))
