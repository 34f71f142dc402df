"""Which run a recording shows: a line of its own before the snapshots of each run.

{"recording": {"version": 2, "flow": "primes", "policy": "ds2", "settings": ["ds2.headroom=0.2"], ...}}

Version 1 does not tell how to decide its snapshots again as its run did; otherwise it is read like version 2.
"""

import platform
from importlib.metadata import PackageNotFoundError, version

import msgspec

VERSION = 2
_READ = (1, VERSION)
_BEGIN = '{"recording"'
_PACKAGES = ("penstock", "pyspark")


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The flow and who decides about it.

    `settings` are all parameters that were set, as `--set` takes them; `slots` is what there is for replicas,
    None without a limit. `built_in`: the policy is one of Penstock's, not the user's own. `guards`: it is
    held back by them. `recommend`: nothing that it decides is carried out. `started_at_s` is by the clock of
    the decisions' `at_s`: seconds since 1970, in the simulator since the start.
    """

    version: int = VERSION
    flow: str
    policy: str
    built_in: bool = True
    settings: list[str] = []
    guards: bool = True
    recommend: bool = False
    slots: int | None = None
    interval_s: float
    started_at_s: float
    versions: dict[str, str] = {}


class _Line(msgspec.Struct, frozen=True):
    recording: RecordingHeader


class _Version(msgspec.Struct, frozen=True):
    version: int


class _AnyLine(msgspec.Struct, frozen=True):
    recording: _Version


def encode_header(header: RecordingHeader) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(_Line(header))


def decode_header(line: bytes | str) -> RecordingHeader | None:
    """The header in a line of a recording; None if it holds something else. A bad header is a ValueError."""
    begin = line[: len(_BEGIN)]
    if (begin.decode(errors="replace") if isinstance(begin, bytes) else begin) != _BEGIN:
        return None
    written = msgspec.json.decode(line, type=_AnyLine).recording.version
    if written not in _READ:
        known = " and ".join(map(str, _READ))
        raise ValueError(f"recording.version: {written} is not known; this Penstock reads {known}")
    return msgspec.json.decode(line, type=_Line).recording


def installed_versions() -> dict[str, str]:
    """Python, and what of Penstock and Spark is installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # run from its sources, or without Spark
    return found
