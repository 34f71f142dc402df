"""Livestream, the job of the HPDC paper and the thesis (section 5.1.1): feeds merged into one film.

packets -> decoder -> merger -> overlay -> encoder -> broadcast; one constraint over all of it. The tasks from
decoder to encoder are joined by forward streams, so they can be chained; packets reach them by group. Not
elastic, as in the thesis: decoders and encoders hold state that cannot move.
"""

from pathlib import Path
from typing import Any

import penstock
from penstock.durations import Duration
from penstock.extras import require

require("av", "livestream", "livestream")
require("PIL", "livestream", "livestream")

from penstock.apps import livestream_feeds as video  # noqa: E402 - first say what is missing
from penstock.apps.livestream_files import Broadcast  # noqa: E402
from penstock.apps.livestream_tasks import Decoder, Encoder, Merger, Overlay  # noqa: E402

TICKER = "Penstock: a gate keeps the flow to the turbine as it should be ... four cameras, one film ... "
# An envelope is full with the pictures of two instants, merged or not. If it were full with one, no lifetime
# would change anything; a picture comes with less than 512 bytes of other things.
PICTURE_BYTES = video.WIDTH * video.HEIGHT * 3 // 2
ENVELOPE_BYTES = 2 * video.FEEDS * (PICTURE_BYTES + 512)
SEQUENCE = [
    "packets->decoder",
    "decoder",
    "decoder->merger",
    "merger",
    "merger->overlay",
    "overlay",
    "overlay->encoder",
    "encoder",
    "encoder->broadcast",
]


def livestream_flow(
    sink: Any,
    *,
    groups: int = 2,
    pipelines: int = 1,
    seconds: float = 60.0,
    bound: Duration = "50 ms",
    window: Duration = "5 s",
    lifetime: Duration = 0,
) -> penstock.Flow:
    """`groups` of four cameras through that many pipelines; envelopes are kept for `lifetime` at first."""
    flow = penstock.Flow("livestream")
    packets = flow.source(video.feeds(groups, seconds)).batched(lifetime)
    frames = packets.by_key(group_of).task(Decoder, name="decoder", parallelism=pipelines)
    merged = frames.forward().batched(lifetime, bytes=ENVELOPE_BYTES).task(Merger, name="merger")
    drawn = merged.forward().batched(lifetime, bytes=ENVELOPE_BYTES).task(Overlay(TICKER), name="overlay")
    films = drawn.forward().batched(lifetime, bytes=ENVELOPE_BYTES).task(Encoder, name="encoder")
    films.by_key(group_of).batched(lifetime).sink(sink, name="broadcast")
    flow.constrain(bound, SEQUENCE, name="live", window=window)
    return flow


def group_of(packet: video.Packet) -> int:
    """The packets of a group stay together and in order."""
    return packet.group


def flow(
    *,
    groups: int = 2,
    pipelines: int = 1,
    seconds: float = 60.0,
    bound_ms: float = 50.0,
    lifetime_ms: float = 0.0,
    out: str = "livestream",
) -> penstock.Flow:
    """For `penstock run livestream`: groups of four cameras for that long, their films in directory `out`."""
    return livestream_flow(
        Broadcast(Path(out).resolve()),
        groups=groups,
        pipelines=pipelines,
        seconds=seconds,
        bound=bound_ms / 1000,
        lifetime=lifetime_ms / 1000,
    )
