"""The snapshot's format, read and written; errors name the field in the user's words.

msgspec checks the types; it calls a key of a dictionary `[...]`, so each task is converted on its own and its
name put in front. Python's json module reads the text: it lets NaN through to where it can be named.
"""

import difflib
import json
import math
import re
from typing import Any, TypeVar

import msgspec

from penstock.stats.snapshot_check import check_snapshot
from penstock.stats.snapshot_structs import (
    VERSION,
    ChannelStats,
    CommitStats,
    ConstraintSpec,
    ExecutorStats,
    InstanceStats,
    KeyGroupStats,
    KeySpanStats,
    QueueStats,
    Snapshot,
    SnapshotError,
    StreamStats,
    TaskStats,
)
from penstock.stats.wording import complaint

__all__ = [
    "ChannelStats",
    "CommitStats",
    "ConstraintSpec",
    "ExecutorStats",
    "InstanceStats",
    "KeyGroupStats",
    "KeySpanStats",
    "QueueStats",
    "Snapshot",
    "SnapshotError",
    "StreamStats",
    "TaskStats",
    "check_snapshot",
    "decode_snapshot",
    "encode_snapshot",
]

FIRST_VERSION = 1
_READ = f"versions {FIRST_VERSION} and {VERSION}"

S = TypeVar("S", bound=msgspec.Struct)


def decode_snapshot(raw: bytes | str | dict[str, Any]) -> Snapshot:
    """A checked snapshot from JSON text or from what a JSON parser made of it.

    One of version 1 becomes one of version 2: that has only more fields, and none of them must be there.

    >>> decode_snapshot('{"version": 2, "interval_s": 5, "tasks": {"a": {"kind": "sink", "parallelism": 0}}}')
    Traceback (most recent call last):
    penstock.stats.snapshot_structs.SnapshotError: tasks.a.parallelism: expected a whole number >= 1, got 0
    """
    fields = _parse(raw) if isinstance(raw, bytes | str) else raw
    if not isinstance(fields, dict):
        raise SnapshotError(f"snapshot: expected an object, got {_named(fields)}")
    if "version" not in fields:
        raise SnapshotError(f"version: is missing; this Penstock reads {_READ}")
    version = fields["version"]
    if isinstance(version, bool) or version not in (FIRST_VERSION, VERSION):
        raise SnapshotError(
            f"version: {json.dumps(version, default=str)} is not known; this Penstock reads {_READ}"
        )
    _refuse_bad_numbers(fields, "")
    parts = {
        **fields,
        "version": VERSION,
        "tasks": _converted_dict(fields, "tasks", TaskStats),
        "streams": _converted_list(fields, "streams", StreamStats),
        "constraints": _converted_list(fields, "constraints", ConstraintSpec),
        "chains": _section(fields, "chains", list),
        "executors": _converted_dict(fields, "executors", ExecutorStats),
    }
    snapshot = _convert(parts, Snapshot, "")
    check_snapshot(snapshot)
    return snapshot


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """One line of JSON; `decode_snapshot` gives an equal snapshot back."""
    return msgspec.json.encode(
        {name: value for name, value in msgspec.structs.asdict(snapshot).items() if value is not None}
    )


def _parse(text: bytes | str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SnapshotError(f"snapshot: is not JSON: {error}") from None
    except RecursionError:
        raise SnapshotError("snapshot: is nested too deeply to be a snapshot") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise SnapshotError(f"{repeated}: is there twice in the same object; name it once")
    return fields


def _refuse_bad_numbers(value: object, path: str) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_bad_numbers(inner, _joined(path, str(name)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _refuse_bad_numbers(inner, f"{path}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise SnapshotError(f"{path}: {value} is not a finite number; leave out what was not measured")
    elif isinstance(value, int | float) and value < 0:
        raise SnapshotError(f"{path}: {value} is negative; it must be 0 or more")


def _section(fields: dict[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    if value is None and name != "tasks":
        return kind()
    if name not in fields:
        raise SnapshotError(f"{name}: is missing")
    if not isinstance(value, kind):
        raise SnapshotError(
            f"{name}: expected {'an object' if kind is dict else 'a list'}, got {_named(value)}"
        )
    return value


def _converted_dict(fields: dict[str, Any], name: str, kind: type[S]) -> dict[str, S] | None:
    if name == "executors" and fields.get(name) is None:
        return None
    section = _section(fields, name, dict)
    return {key: _convert(value, kind, f"{name}.{key}") for key, value in section.items()}


def _converted_list(fields: dict[str, Any], name: str, kind: type[S]) -> list[S]:
    return [
        _convert(item, kind, f"{name}[{index}]") for index, item in enumerate(_section(fields, name, list))
    ]


def _convert(value: object, kind: type[S], path: str) -> S:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        raise SnapshotError(_explained(str(error), value, kind, path)) from None


def _explained(message: str, value: object, kind: type[S], path: str) -> str:
    """msgspec's message in the words of the snapshot; `kind` is what `value` at `path` should have been."""
    problem, _, where = message.partition(" - at `$")
    inner = where.rstrip("`")
    field = (path + inner).lstrip(".") or "snapshot"
    missing = re.search(r"missing required field `([^`]+)`", problem)
    if missing:
        return f"{_joined(field if path or inner else '', missing[1])}: is missing"
    unknown = re.search(r"unknown field `([^`]+)`", problem)
    if unknown:
        known = [] if inner else [f.encode_name for f in msgspec.structs.fields(kind)]
        close = difflib.get_close_matches(unknown[1], known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"{_joined(field if path or inner else '', unknown[1])}: unknown field{hint}"
    given = _lookup(value, inner)
    return f"{field}: {complaint(problem, kind, inner.lstrip('.'))}, got {_named(given)}"


def _lookup(value: Any, path: str) -> object:
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(index)]
    return value


def _named(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
