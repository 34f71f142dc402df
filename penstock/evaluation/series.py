"""Values of a run, interval by interval, and figures of a part of it."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from penstock.report.history import History

# So long a flow starts: Java compiles, lifetimes and replicas are found.
STARTING_S = 16.0


def replicas(history: History, *tasks: str) -> list[float | None]:
    """Active replicas of these tasks together."""
    return [float(sum(s.tasks[name].parallelism for name in tasks)) for s in history.snapshots]


def sent_per_s(history: History) -> list[float | None]:
    """Items of all sources."""
    return [
        sum(task.rate_total or 0.0 for task in snapshot.tasks.values() if task.kind == "source")
        for snapshot in history.snapshots
    ]


def received_per_s(history: History) -> list[float | None]:
    """Items at all sinks."""
    return [
        sum(task.processed_total or 0.0 for task in snapshot.tasks.values() if task.kind == "sink")
        / snapshot.interval_s
        for snapshot in history.snapshots
    ]


def cores(history: History) -> list[float | None]:
    """Busy cores of everything that belongs to the flow."""
    return [snapshot.cores_used for snapshot in history.snapshots]


def within(history: History, begin_s: float, end_s: float = float("inf")) -> list[int]:
    """The intervals that lie in a span of time."""
    spans = zip(history.begins_s, history.ends_s, strict=True)
    return [place for place, (begin, end) in enumerate(spans) if begin >= begin_s and end <= end_s]


def part_of(history: History, places: Sequence[int]) -> History:
    """Those intervals alone, without the decisions."""
    return replace(history, snapshots=tuple(history.snapshots[place] for place in places), entries=())


def settled(history: History) -> History:
    """The run without its start; the whole of it if it is no longer than that."""
    return part_of(history, within(history, STARTING_S) or range(len(history.snapshots)))


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def changes(history: History, *tasks: str) -> list[tuple[float, tuple[int, ...]]]:
    """When the replicas of these tasks became what; the first entry is the start."""
    found: list[tuple[float, tuple[int, ...]]] = []
    for begin_s, snapshot in zip(history.begins_s, history.snapshots, strict=True):
        now = tuple(snapshot.tasks[name].parallelism for name in tasks)
        if not found or found[-1][1] != now:
            found.append((begin_s, now))
    return found
