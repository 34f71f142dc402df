"""The rules of a snapshot that types alone cannot say: names that exist, sequences that are connected."""

import re
from collections.abc import Iterable, Sequence

from penstock.stats.snapshot_structs import ARROW, ConstraintSpec, KeySpanStats, Snapshot, SnapshotError

STATISTIC = re.compile(r"mean|p[0-9]{1,2}(\.[0-9]+)?")


def check_snapshot(snapshot: Snapshot) -> None:
    """Raise `SnapshotError` naming the first field that contradicts another one."""
    _check_tasks(snapshot)
    _check_streams(snapshot)
    _check_constraints(snapshot)
    _check_chains(snapshot)
    snapshot.topological_order()


def _check_tasks(snapshot: Snapshot) -> None:
    if not snapshot.tasks:
        raise SnapshotError("tasks: is empty; a flow has at least one task")
    for name, task in snapshot.tasks.items():
        if not name or ARROW in name or "." in name:
            raise SnapshotError(f"tasks.{name}: a task's name is not empty and holds neither '->' nor '.'")
        if task.max is not None and task.max < task.min:
            raise SnapshotError(f"tasks.{name}.max: {task.max} is less than min, which is {task.min}")
        _check_key_table(task.key_table or [], f"tasks.{name}.key_table", task.parallelism)


def _check_key_table(table: Sequence[KeySpanStats], path: str, replicas: int) -> None:
    following = 0
    for index, span in enumerate(table):
        if span.first != following or span.last < span.first:
            raise SnapshotError(
                f"{path}[{index}]: {span.first} to {span.last} is not a span that begins at {following}"
            )
        if span.replica >= replicas:
            raise SnapshotError(f"{path}[{index}].replica: {span.replica} is not below {replicas}")
        following = span.last + 1


def _check_streams(snapshot: Snapshot) -> None:
    seen: set[str] = set()
    for index, stream in enumerate(snapshot.streams):
        for field, task in (("from", stream.sender), ("to", stream.receiver)):
            if task not in snapshot.tasks:
                raise SnapshotError(
                    f"streams[{index}].{field}: there is no task {task!r}; {_known(snapshot.tasks)}"
                )
        if snapshot.tasks[stream.sender].kind == "sink":
            raise SnapshotError(f"streams[{index}].from: {stream.sender!r} is a sink and sends nothing")
        if snapshot.tasks[stream.receiver].kind == "source":
            raise SnapshotError(f"streams[{index}].to: {stream.receiver!r} is a source and receives nothing")
        if stream.name in seen:
            raise SnapshotError(f"streams[{index}]: {stream.name!r} is there twice; name it once")
        seen.add(stream.name)


def _check_constraints(snapshot: Snapshot) -> None:
    owner: dict[str, str] = {}
    windows: dict[str, float] = {}
    for index, constraint in enumerate(snapshot.constraints):
        path = f"constraints[{index}]"
        if any(constraint.name == other.name for other in snapshot.constraints[:index]):
            raise SnapshotError(
                f"{path}.name: {constraint.name!r} is there twice; give each constraint its own"
            )
        if not STATISTIC.fullmatch(constraint.statistic):
            raise SnapshotError(
                f"{path}.statistic: {constraint.statistic!r} is not known;"
                " use 'mean' or a percentile such as 'p95'"
            )
        _check_sequence(snapshot, constraint, f"{path}.sequence")
        for stream in constraint.streams():
            if stream in owner:
                raise SnapshotError(
                    f"{path}.sequence: stream {stream!r} is already in constraint {owner[stream]!r};"
                    " constraints may share tasks but no stream"
                )
            owner[stream] = constraint.name
        if constraint.window_s is not None:
            for other, window_s in windows.items():
                if window_s != constraint.window_s:
                    raise SnapshotError(
                        f"{path}.window_s: {constraint.window_s:g} differs from the {window_s:g} of"
                        f" constraint {other!r}; all constraints of a flow have one window"
                    )
            windows[constraint.name] = constraint.window_s


def _check_sequence(snapshot: Snapshot, constraint: ConstraintSpec, path: str) -> None:
    if not constraint.sequence:
        raise SnapshotError(f"{path}: is empty; name at least one task or stream")
    streams = {stream.name: stream for stream in snapshot.streams}
    for index, element in enumerate(constraint.sequence):
        if ARROW in element:
            if element not in streams:
                raise SnapshotError(f"{path}[{index}]: there is no stream {element!r}; {_known(streams)}")
        elif element not in snapshot.tasks:
            raise SnapshotError(f"{path}[{index}]: there is no task {element!r}; {_known(snapshot.tasks)}")
    for index, (left, right) in enumerate(zip(constraint.sequence, constraint.sequence[1:], strict=False), 1):
        if left in streams and right not in streams:
            connected = streams[left].receiver == right
        elif right in streams and left not in streams:
            connected = streams[right].sender == left
        else:
            connected = False
        if not connected:
            raise SnapshotError(
                f"{path}[{index}]: {right!r} does not follow {left!r};"
                " a sequence alternates tasks and the streams that join them"
            )


def _check_chains(snapshot: Snapshot) -> None:
    """A chain none of whose tasks is described belongs to a part of the flow outside the snapshot."""
    joined = {(stream.sender, stream.receiver) for stream in snapshot.streams}
    seen: set[str] = set()
    for index, chain in enumerate(snapshot.chains):
        outside = not any(task in snapshot.tasks for task in chain)
        for position, task in enumerate(chain):
            path = f"chains[{index}][{position}]"
            if task in seen:
                raise SnapshotError(f"{path}: {task!r} is already in a chain; a task is in one chain")
            seen.add(task)
            if outside:
                continue
            if task not in snapshot.tasks:
                raise SnapshotError(f"{path}: there is no task {task!r}; {_known(snapshot.tasks)}")
            if position and (chain[position - 1], task) not in joined:
                raise SnapshotError(f"{path}: no stream joins {chain[position - 1]!r} to {task!r}")


def _known(names: Iterable[str]) -> str:
    listed = ", ".join(sorted(names))
    return f"there are {listed}" if listed else "there are none"
