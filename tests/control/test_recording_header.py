"""The line before the snapshots of a run: what it says, what is taken for one, and what is not."""

import json

import pytest

from penstock.control.recording_header import decode_header, encode_header, installed_versions
from penstock.stats.snapshot import encode_snapshot
from tests.control.headers import header
from tests.control.steady_task import loaded

WHOLE = header(settings=["ds2.headroom=0.2"], slots=8, versions={"python": "3.12.1"})


def test_what_is_written_is_read() -> None:
    line = encode_header(WHOLE)
    assert json.loads(line)["recording"] == {
        "version": 2,
        "flow": "run",
        "policy": "ds2",
        "built_in": True,
        "settings": ["ds2.headroom=0.2"],
        "guards": True,
        "recommend": False,
        "slots": 8,
        "interval_s": 5.0,
        "started_at_s": 0.0,
        "versions": {"python": "3.12.1"},
    }
    assert decode_header(line) == decode_header(line.decode()) == WHOLE


def test_a_snapshot_is_not_a_header() -> None:
    assert decode_header(encode_snapshot(loaded(100, 1))) is None
    assert decode_header("") is None


def test_a_bad_header_is_refused() -> None:
    with pytest.raises(ValueError, match=r"recording\.version: 3 is not known; this Penstock reads 1 and 2"):
        decode_header('{"recording": {"version": 3, "flow": "run"}}')
    with pytest.raises(ValueError, match=r"missing required field `flow`"):
        decode_header('{"recording": {"version": 1}}')


def test_versions_are_those_of_what_is_installed() -> None:
    versions = installed_versions()
    assert set(versions) <= {"penstock", "pyspark", "python"}
    assert versions["python"].startswith("3.")
