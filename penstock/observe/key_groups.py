"""What the groups of keys of a task had to do, and who owns them, in a snapshot."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from penstock.stats.key_load import GroupTime, KeyLoad, merged_loads
from penstock.stats.snapshot import KeyGroupStats, KeySpanStats, Snapshot, TaskStats
from penstock.wire.divisions import Division

SHOWN: Final = 32
"""Of the heaviest groups; the load of the others is in the spans they belong to."""

ENOUGH: Final = 8
"""So many items of a group must have been timed for its own mean to say more than that of the task."""


def with_key_groups(
    snapshot: Snapshot,
    keyed: Mapping[str, KeyLoad],
    times: Mapping[str, Mapping[int, GroupTime]],
    divisions: Mapping[str, Division],
    divisible: Collection[str],
    longest_waits_ms: Mapping[str, float | None],
) -> Snapshot:
    """`keyed` is what was sent into each stream by key, `times` how long items took in each task.

    Of tasks whose keys may be divided in another way while the flow runs, the table is told, too, and how
    long items waited where they waited longest.
    """
    tasks = dict(snapshot.tasks)
    for name, task in snapshot.tasks.items():
        load = merged_loads(keyed.get(stream.name, KeyLoad()) for stream in snapshot.streams_into(name))
        if load.total:
            tasks[name] = task = _with_groups(task, load, times.get(name, {}))
            if name in divisible:
                longest_ms = longest_waits_ms.get(name)
                table = _table(load, divisions[name])
                tasks[name] = msgspec.structs.replace(task, key_table=table, queue_wait_max_ms=longest_ms)
    return msgspec.structs.replace(snapshot, tasks=tasks)


def _with_groups(task: TaskStats, load: KeyLoad, times: Mapping[int, GroupTime]) -> TaskStats:
    groups = [
        KeyGroupStats(group=group, processed=count, useful_s=_useful_s(task, count, times.get(group)))
        for group, count in load.heaviest(SHOWN)
    ]
    return msgspec.structs.replace(task, key_groups=groups)


def _table(load: KeyLoad, division: Division) -> list[KeySpanStats]:
    return [
        KeySpanStats(
            first=span.first,
            last=span.last,
            replica=span.replica,
            processed=round(load.between(span.first, span.last), 1),
        )
        for span in division.spans
    ]


def _useful_s(task: TaskStats, count: int, time: GroupTime | None) -> float | None:
    """Items by their mean time: that of the group if enough of them were timed, else that of the task."""
    mean_ms = time.took_ms / time.items if time is not None and time.items >= ENOUGH else task.service_ms
    return None if mean_ms is None else round(count * mean_ms / 1000, 6)
