"""What the replicas of now have borne: of the last intervals with them, what came and whether it was held.

A model that asks for more where nothing more comes, and what came was held, has been led by luck. Then there
is time to wait and see, however long replicas take. One interval that was not held may be luck, too; two are
not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_REMEMBERED = 10
_ENOUGH = 3
_LUCKY = 1
_AS_MUCH = 1.05


@dataclass(frozen=True, slots=True)
class Proved:
    """Of each interval since replicas changed, the last ones: rates by source, and whether it was held."""

    intervals: tuple[tuple[Mapping[str, float], bool], ...] = ()

    def then(self, rates: Mapping[str, float], *, held: bool, changed: bool) -> "Proved":
        """With one more; anew if replicas have changed."""
        if changed:
            return Proved()
        return Proved((*self.intervals, (dict(rates), held))[-_REMEMBERED:])

    @property
    def is_solid(self) -> bool:
        """Whether all that is remembered was held."""
        return len(self.intervals) == _REMEMBERED and all(held for _, held in self.intervals)

    def bears(self, planned: Mapping[str, float]) -> bool:
        """Whether so much has come, and was held."""
        borne = [rates for rates, held in self.intervals if held]
        missed = len(self.intervals) - len(borne)
        if len(borne) < _ENOUGH or missed > _LUCKY:
            return False
        return all(
            rate <= _AS_MUCH * max(rates.get(source, 0.0) for rates in borne)
            for source, rate in planned.items()
        )
