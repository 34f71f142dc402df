"""An item with its metadata: headers, a timestamp and a key, as message brokers have them.

A source gives records, or a task sends them; tasks on the way get the bare item, and what they make of it
inherits the metadata.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

Item_co = TypeVar("Item_co", covariant=True)


class Record(msgspec.Struct, Generic[Item_co], frozen=True):
    """An item, and what is to be known of it besides.

    `timestamp` is in milliseconds since 1970 (UTC). What is None is as it came: of a record that a task
    sends, it is that of the item being processed; of a source's, there is none. `headers={}` has none.
    """

    value: Item_co
    headers: Mapping[str, bytes] | None = None
    timestamp: int | None = None
    key: bytes | None = None


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """What travels beside an item."""

    headers: dict[str, bytes] = {}
    timestamp: int | None = None
    key: bytes | None = None


NO_METADATA = Metadata()
"""Of an item that came without any."""


def metadata_of(record: Record[Any], inherited: Metadata | None = None) -> Metadata | None:
    """The metadata of a record, None if there are none; `TypeError` says what they cannot be."""
    before = inherited or NO_METADATA
    made = Metadata(
        before.headers if record.headers is None else _checked_headers(record.headers),
        before.timestamp if record.timestamp is None else _checked_timestamp(record.timestamp),
        before.key if record.key is None else _checked_key(record.key),
    )
    return None if made == NO_METADATA else made


def _checked_headers(headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """A copy, so that no later change of the task's own dict reaches an item that was sent."""
    if not isinstance(headers, Mapping):
        raise TypeError(
            f"the headers of a record are names with bytes ({{'trace': b'1'}}), not {headers!r:.80}"
        )
    for name, value in headers.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a header is a string, not {name!r}")
        if not isinstance(value, bytes):
            raise TypeError(f"header {name!r} of a record must be bytes, not {value!r:.80}")
    return dict(headers)


def _checked_timestamp(timestamp: int) -> int:
    if isinstance(timestamp, bool) or not isinstance(timestamp, int):
        raise TypeError(
            f"the timestamp of a record is a whole number of milliseconds since 1970, not {timestamp!r}"
        )
    return timestamp


def _checked_key(key: bytes) -> bytes:
    if not isinstance(key, bytes):
        raise TypeError(f"the key of a record must be bytes, not {key!r:.80}")
    return key
