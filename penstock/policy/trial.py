"""A change on trial: what was changed, under which load, and whether it made things worse.

Things are worse when, under the same load, a smaller share of it is delivered than before (DS2, OSDI
2018, section 4.2.2, says that a scaling action that degrades performance is rolled back, and leaves the
measure open).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from penstock.policy.keep import current_parallelism
from penstock.policy.load import delivered_share, same_load, source_rates
from penstock.stats.snapshot import Snapshot


class Verdict(Enum):
    """What a snapshot says about a change."""

    PENDING = "pending"  # not yet in effect
    UNKNOWN = "unknown"  # overtaken by another change, by another load, or not measured
    GOOD = "good"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Trial:
    """A change of parallelism and how the flow did before it."""

    before: Mapping[str, int]
    after: Mapping[str, int]
    rates_per_s: Mapping[str, float]
    share: float | None

    def judge(self, snapshot: Snapshot, tolerance: float, load_tolerance: float) -> Verdict:
        """The verdict of a snapshot whose interval lies after the change."""
        now = current_parallelism(snapshot)
        if now == self.before:
            return Verdict.PENDING
        share = delivered_share(snapshot)
        comparable = now == self.after and same_load(self.rates_per_s, source_rates(snapshot), load_tolerance)
        if not comparable or share is None or self.share is None:
            return Verdict.UNKNOWN
        return Verdict.WORSE if share < self.share * (1 - tolerance) else Verdict.GOOD


def trial_of(snapshot: Snapshot, after: Mapping[str, int]) -> Trial | None:
    """The trial that begins when `after` is issued on `snapshot`; None if it changes nothing."""
    before = current_parallelism(snapshot)
    if before == after:
        return None
    return Trial(before, dict(after), source_rates(snapshot), delivered_share(snapshot))
