"""What the policy remembers from one interval to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.policy.penstock.capacity import Scalability
from penstock.policy.penstock.chains import Wish
from penstock.policy.penstock.counted import Counted, Ratio
from penstock.policy.penstock.forecast import History
from penstock.policy.penstock.luck import Luck
from penstock.policy.penstock.margin import Margin
from penstock.policy.penstock.price import Prices
from penstock.policy.penstock.proved import Proved
from penstock.policy.penstock.waiting import Fit
from penstock.stats.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Memory:
    """`plans` are the rates of the sources that were planned for, one for each of the last intervals;
    `onsets` what has begun to come to tasks within the last one."""

    last: Snapshot | None = None
    counts: Counted = field(default_factory=Counted)
    sources: Mapping[str, History] = field(default_factory=dict)
    plans: tuple[Mapping[str, float], ...] = ()
    scalability: Mapping[str, Scalability] = field(default_factory=dict)
    fits: Mapping[str, Fit] = field(default_factory=dict)
    holders: Mapping[str, int] = field(default_factory=dict)
    fixed: Mapping[str, Ratio] = field(default_factory=dict)
    tails: Mapping[str, float] = field(default_factory=dict)
    lucks: Mapping[str, Luck] = field(default_factory=dict)
    margins: Mapping[str, Margin] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    proved: Proved = field(default_factory=Proved)
    chains: Wish | None = None
    onsets: Mapping[str, float] = field(default_factory=dict)

    @property
    def fixed_ms(self) -> dict[str, float]:
        """What each constraint takes anyway, without the queues of elastic tasks."""
        return fixed_ms(self.fixed)


def fixed_ms(fixed: Mapping[str, Ratio]) -> dict[str, float]:
    """Of those that were measured."""
    return {name: one.value for name, one in fixed.items() if one.value is not None}
