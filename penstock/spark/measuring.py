"""How much is measured and how often, as users say it: checked before anything is changed."""

from penstock.durations import Duration, seconds
from penstock.flow.errors import FlowError

_SHORTEST_S = 0.5


def sampling_share(share: float) -> float:
    """The share of the items that is measured."""
    if not 0.0 <= share <= 1.0:
        raise FlowError(f"a sampling rate of {share} is not between 0 and 1")
    return share


def measuring_interval_s(every: Duration) -> float:
    """The time between two reports of a worker, if it is long enough to be worth one."""
    every_s = seconds(every)
    if every_s < _SHORTEST_S:
        raise FlowError(f"a report every {every_s:g} s is more often than every {_SHORTEST_S} s")
    return every_s
