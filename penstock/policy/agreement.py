"""One number of replicas out of several consecutive proposals (DS2's activation time, OSDI 2018, section
4.2.1).

Computations that come in bursts, such as windows that are evaluated when they close, make single proposals
unreliable; the maximum or the median over some intervals is not.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

AgreementRule = Literal["last", "max", "median"]


def agreed(proposals: Sequence[Mapping[str, int]], rule: AgreementRule) -> dict[str, int]:
    """The replicas of each task of the last proposal; of two middle values the larger is the median."""
    if rule == "last":
        return dict(proposals[-1])
    return {
        task: _combined([proposal[task] for proposal in proposals if task in proposal], rule)
        for task in proposals[-1]
    }


def _combined(values: list[int], rule: AgreementRule) -> int:
    return max(values) if rule == "max" else sorted(values)[len(values) // 2]
