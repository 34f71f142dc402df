"""How far apart the commits of a flow are."""

from dataclasses import replace

from penstock.durations import Duration, format_ms, milliseconds
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph

_WITH_CHECKPOINT: Duration = "30 s"  # what a crash replays
_WITHOUT: Duration = "10 min"  # what a restart replays: it ends with its driver
_BY_MARKS: Duration = "1 s"
_SHORTEST_MS = 1_000  # a boundary takes some tenths of a second
_SHORTEST_MARKED_MS = 100  # marks are under way for some tens of milliseconds
_LONGEST_MS = 12 * 3_600_000  # well below the trigger, which would cut a batch off


_MOST_KEPT = 90  # Spark forgets its own after 100


def kept_commits(keep: int) -> int:
    """How many commits a flow can go back to."""
    if not 1 <= keep <= _MOST_KEPT:
        raise FlowError(f"keep_commits={keep} is not between 1 and {_MOST_KEPT}; choose a number within")
    return keep


def commit_ms(commit: Duration | None, *, has_checkpoint: bool, marks: bool = False) -> float:
    """The longest time between two commits; None is the default, which depends on who may need them."""
    default = _BY_MARKS if marks else _WITH_CHECKPOINT if has_checkpoint else _WITHOUT
    chosen_ms = milliseconds(default if commit is None else commit)
    shortest_ms = _SHORTEST_MARKED_MS if marks else _SHORTEST_MS
    if not shortest_ms <= chosen_ms <= _LONGEST_MS:
        raise FlowError(
            f"a commit every {format_ms(chosen_ms)} is not between {format_ms(shortest_ms)} and 12 h; choose"
            " one within"
        )
    return chosen_ms


def batch_ms(commit_ms: float, *, marks: bool) -> float:
    """How long a batch may last: until the next commit, or very long where commits are marks inside it."""
    return _LONGEST_MS if marks else commit_ms


def unchained(graph: Graph) -> Graph:
    """The flow as it is where commits are epoch marks: tasks keep processes of their own."""
    return replace(graph, tasks=tuple(replace(task, chain=False) for task in graph.tasks))
