"""Headers of recordings."""

import msgspec

from penstock.control.recording_header import RecordingHeader

HEADER = RecordingHeader(flow="run", policy="ds2", interval_s=5.0, started_at_s=0.0)


def header(**changes: object) -> RecordingHeader:
    return msgspec.structs.replace(HEADER, **changes)
