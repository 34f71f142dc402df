"""One line of a recording: what an interval showed, when it ended, and whether a boundary disturbed it.

{"at_s": 1767225605.0, "stood_still_ms": 210.0, "snapshot": {"version": 1, "interval_s": 5.0, ...}}

That is all that a decision depends on, so that it can be made again. A line may also be a snapshot alone.
"""

import msgspec

from penstock.stats.snapshot import Snapshot, decode_snapshot, encode_snapshot

_BEGIN = b'{"at_s"'


class RecordedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`at_s` is by the clock of the decisions, None if only the snapshot is known.

    `stood_still_ms` is how long the sources stood still at the boundary that disturbed the interval, None if
    none did: then it was decided on, unless the policy was off and not asked.
    """

    snapshot: Snapshot
    at_s: float | None = None
    stood_still_ms: float | None = None
    is_asked: bool = True


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    at_s: float | None
    stood_still_ms: float | None = None
    is_asked: bool = True
    snapshot: msgspec.Raw = msgspec.Raw()


def encode_recorded(recorded: RecordedSnapshot) -> bytes:
    """One line of JSON."""
    snapshot = msgspec.Raw(encode_snapshot(recorded.snapshot))
    return msgspec.json.encode(_Line(recorded.at_s, recorded.stood_still_ms, recorded.is_asked, snapshot))


def decode_recorded(line: bytes | str) -> RecordedSnapshot:
    """A line of a recording that is no header; a bad one is a ValueError that names the field."""
    raw = line.encode() if isinstance(line, str) else line
    if not raw.startswith(_BEGIN):
        return RecordedSnapshot(snapshot=decode_snapshot(line))
    read = msgspec.json.decode(raw, type=_Line)
    snapshot = decode_snapshot(bytes(read.snapshot))
    return RecordedSnapshot(
        snapshot=snapshot, at_s=read.at_s, stood_still_ms=read.stood_still_ms, is_asked=read.is_asked
    )
