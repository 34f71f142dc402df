"""Where items come from and where they go: sources, sinks, and the protocols for others."""

from penstock.io.day_night import Burst, day_night
from penstock.io.dedup import DedupJsonl, dedup_jsonl
from penstock.io.jsonl import Jsonl, jsonl
from penstock.io.paced import Paced, paced
from penstock.io.protocol import Offset, Reader, Sink, SinkContext, Source, SourceClock
from penstock.io.replay import Replay, replay
from penstock.io.schedule import Schedule, constant, steps
from penstock.io.trace import trace

__all__ = [
    "Burst",
    "DedupJsonl",
    "Jsonl",
    "Offset",
    "Paced",
    "Reader",
    "Replay",
    "Schedule",
    "Sink",
    "SinkContext",
    "Source",
    "SourceClock",
    "constant",
    "day_night",
    "dedup_jsonl",
    "jsonl",
    "paced",
    "replay",
    "steps",
    "trace",
]
