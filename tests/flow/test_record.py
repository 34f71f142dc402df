"""Metadata of records: what is said, what is inherited, and what they cannot be."""

from typing import Any

import pytest

from penstock.flow.record import Metadata, Record, metadata_of

CAME = Metadata({"trace": b"1"}, 1000, b"k")


@pytest.mark.parametrize(
    ("record", "alone", "inheriting"),
    [
        (Record("x"), None, CAME),
        (Record("x", {}), None, Metadata({}, 1000, b"k")),
        (Record("x", {"a": b"b"}), Metadata({"a": b"b"}), Metadata({"a": b"b"}, 1000, b"k")),
        (Record("x", timestamp=0), Metadata(timestamp=0), Metadata({"trace": b"1"}, 0, b"k")),
        (Record("x", key=b""), Metadata(key=b""), Metadata({"trace": b"1"}, 1000, b"")),
    ],
)
def test_what_a_record_does_not_say_is_as_it_came(
    record: Record[str], alone: Metadata | None, inheriting: Metadata
) -> None:
    assert metadata_of(record) == alone
    assert metadata_of(record, CAME) == inheriting


def test_headers_are_copied() -> None:
    headers = {"trace": b"1"}
    made = metadata_of(Record("x", headers))
    headers["trace"] = b"2"
    assert made == Metadata({"trace": b"1"})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"headers": ["a"]},
            "the headers of a record are names with bytes ({'trace': b'1'}), not ['a']",
        ),
        ({"headers": {1: b""}}, "the name of a header is a string, not 1"),
        ({"headers": {"a": "b"}}, "header 'a' of a record must be bytes, not 'b'"),
        (
            {"timestamp": 1.5},
            "the timestamp of a record is a whole number of milliseconds since 1970, not 1.5",
        ),
        ({"key": "k"}, "the key of a record must be bytes, not 'k'"),
    ],
)
def test_other_metadata_are_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError) as caught:
        metadata_of(Record("x", **said))
    assert str(caught.value) == words
