"""How far apart the commits of a flow are."""

from penstock.durations import Duration, format_ms, milliseconds
from penstock.flow.errors import FlowError

_WITH_CHECKPOINT: Duration = "30 s"  # what a crash replays
_WITHOUT: Duration = "10 min"  # what a restart replays: it ends with its driver
_SHORTEST_MS = 1_000  # a boundary takes some tenths of a second
_LONGEST_MS = 12 * 3_600_000  # well below the trigger, which would cut a batch off


_MOST_KEPT = 90  # Spark forgets its own after 100


def kept_commits(keep: int) -> int:
    """How many commits a flow can go back to."""
    if not 1 <= keep <= _MOST_KEPT:
        raise FlowError(f"keep_commits={keep} is not between 1 and {_MOST_KEPT}; choose a number within")
    return keep


def commit_ms(commit: Duration | None, *, has_checkpoint: bool) -> float:
    """The longest time between two commits; None is the default, which depends on who may need them."""
    default = _WITH_CHECKPOINT if has_checkpoint else _WITHOUT
    chosen_ms = milliseconds(default if commit is None else commit)
    if not _SHORTEST_MS <= chosen_ms <= _LONGEST_MS:
        raise FlowError(
            f"a commit every {format_ms(chosen_ms)} is not between 1 s and 12 h; choose one within"
        )
    return chosen_ms
