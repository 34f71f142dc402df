"""When a flow commits if nothing else is said, and what that means for it, in words."""

from typing import Final

from penstock.durations import format_ms
from penstock.flow.graph import Graph
from penstock.flow.stateful import exact_tasks

BY_MARKS: Final = "1 s"  # what a crash replays
AT_BOUNDARIES: Final = "30 s"  # sources stop for each
WITHOUT_CHECKPOINT: Final = "10 min"  # what a restart replays: the flow ends with its driver


def stops_for_commits(every_ms: float, why: str) -> str:
    """What is told where there is a checkpoint, and commits cannot be marks."""
    return (
        f"commits are boundaries, {format_ms(every_ms)} apart, and sources stop for some tenths of a second"
        f" for each: {why}"
    )


def commits_in_words(graph: Graph) -> list[str]:
    """With a checkpoint of each kind, and without one."""
    said = [
        f"with a checkpoint: every {BY_MARKS}, by marks that travel with the items; nothing stops",
        f"with a checkpoint in an object store other than S3 (gs:, abfs:): every {AT_BOUNDARIES}, at"
        " boundaries, for which sources stop",
        f"without a checkpoint: every {WITHOUT_CHECKPOINT}, at boundaries; the flow ends with its driver",
    ]
    exact = exact_tasks(graph, by_marks=True)
    if exact:
        said.append(
            f"if a worker of {', '.join(exact)} ends, the flow goes back to its last commit, so that what has"
            " state or writes exactly once has every item once; other workers are replaced, and all goes on"
        )
    else:
        said.append(
            "a worker that ends is replaced, and all goes on: nothing here has every item exactly once"
        )
    return said
