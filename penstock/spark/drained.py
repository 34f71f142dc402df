"""What `stop()` brought to its end."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drained:
    """A flow that lost nothing: all that its sources had read is processed and committed.

    `commit` is the number of its last commit, None if there never was one. `items` is how many items each
    task still processed, counted from what its workers had last reported before the call, about a second ago
    at most; `took_s` is how long all of it took.
    """

    commit: int | None
    items: Mapping[str, int]
    took_s: float

    def __str__(self) -> str:
        counts = ", ".join(f"{task} {count:,}" for task, count in self.items.items() if count)
        committed = (
            "nothing was to be committed" if self.commit is None else f"commit {self.commit} is the last"
        )
        return f"drained in {self.took_s:.1f} s ({counts or 'no item'} under way), {committed}"
