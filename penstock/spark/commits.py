"""How a flow commits: by marks or at boundaries, and how far apart."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from penstock.durations import Duration, format_ms, milliseconds
from penstock.flow.commits import AT_BOUNDARIES, BY_MARKS, WITHOUT_CHECKPOINT
from penstock.flow.errors import FlowError

CommitBy = Literal["marks", "boundaries"]
"""What a commit is: marks that travel with the items, or the end of a batch, for which sources stop."""

_SHORTEST_MS: Final = 1_000  # a boundary takes some tenths of a second
_SHORTEST_MARKED_MS: Final = 100  # marks are under way for some tens of milliseconds
_LONGEST_MS: Final = 12 * 3_600_000  # well below the trigger, which would cut a batch off
_MOST_KEPT: Final = 90  # Spark forgets its own after 100


@dataclass(frozen=True, slots=True)
class Commits:
    """The longest time between two commits, and what they are; `asked` says that somebody wants them so."""

    every_ms: float
    by_marks: bool
    asked: bool = False

    @property
    def batch_ms(self) -> float:
        """How long a batch may last: until the next commit, or very long where commits are inside it."""
        return _LONGEST_MS if self.by_marks else self.every_ms


def kept_commits(keep: int) -> int:
    """How many commits a flow can go back to."""
    if not 1 <= keep <= _MOST_KEPT:
        raise FlowError(f"keep_commits={keep} is not between 1 and {_MOST_KEPT}; choose a number within")
    return keep


def commits_of(commit: Duration | None, commit_by: CommitBy | None, *, has_checkpoint: bool) -> Commits:
    """What is asked for; None is the default: marks for who can be resumed, else boundaries far apart."""
    if commit_by is not None and commit_by not in get_args(CommitBy):
        choices = " or ".join(f'"{choice}"' for choice in get_args(CommitBy))
        raise FlowError(f"commit_by={commit_by!r} is not {choices}")
    by_marks = has_checkpoint if commit_by is None else commit_by == "marks"
    default = BY_MARKS if by_marks else AT_BOUNDARIES if has_checkpoint else WITHOUT_CHECKPOINT
    chosen_ms = milliseconds(default if commit is None else commit)
    shortest_ms = _SHORTEST_MARKED_MS if by_marks else _SHORTEST_MS
    if not shortest_ms <= chosen_ms <= _LONGEST_MS:
        raise FlowError(
            f"a commit every {format_ms(chosen_ms)} is not between {format_ms(shortest_ms)} and 12 h; choose"
            " one within"
        )
    return Commits(chosen_ms, by_marks, asked=commit_by is not None)
