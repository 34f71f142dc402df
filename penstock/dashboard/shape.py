"""Where the tasks of a flow stand in its picture: columns from sources to sinks, rows near their senders."""

from statistics import fmean

import msgspec

from penstock.stats.snapshot import Snapshot


class TaskPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A task; rows of a column are whole numbers apart."""

    name: str
    kind: str
    column: int
    row: float


class StreamPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A stream between two tasks."""

    name: str
    sender: str
    receiver: str
    wiring: str


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A flow without its figures."""

    tasks: list[TaskPlace] = []
    streams: list[StreamPlace] = []


def shape_of(snapshot: Snapshot) -> Shape:
    """A task stands one column behind the last of those that send to it.

    Within a column tasks are sorted by the mean row of their senders, and every column is centred.
    """
    column: dict[str, int] = {}
    for name in snapshot.topological_order():
        column[name] = 1 + max((column[s.sender] for s in snapshot.streams_into(name)), default=-1)
    row: dict[str, float] = {}
    for number in range(max(column.values(), default=-1) + 1):
        here = [name for name in column if column[name] == number]
        if number:
            near = {name: fmean(row[s.sender] for s in snapshot.streams_into(name)) for name in here}
            here.sort(key=near.__getitem__)
        row.update((name, place - (len(here) - 1) / 2) for place, name in enumerate(here))
    top = min(row.values(), default=0.0)
    return Shape(
        tasks=[
            TaskPlace(name=name, kind=task.kind, column=column[name], row=row[name] - top)
            for name, task in snapshot.tasks.items()
        ],
        streams=[
            StreamPlace(name=one.name, sender=one.sender, receiver=one.receiver, wiring=one.wiring)
            for one in snapshot.streams
        ],
    )
