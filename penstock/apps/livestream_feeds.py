"""The cameras of Livestream: H.264 packets of moving test pictures, the four of a group at the same time."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from penstock.io.paced import Paced, PacedReader, paced
from penstock.io.protocol import SourceClock

WIDTH, HEIGHT = 320, 240
FRAMES_PER_S = 25
FEEDS = 4
CLIP_FRAMES = 2 * FRAMES_PER_S
# U and V of the backgrounds; one colour for each camera.
TINTS = ((110, 160), (160, 110), (100, 100), (150, 150))

Picture = NDArray[np.uint8]
"""A frame in yuv420p: the luma plane, below it the two chroma planes of a quarter of its size."""


class Packet(NamedTuple):
    """A compressed frame of a feed, or of the merged picture of a group (feed is None)."""

    group: int
    feed: int | None
    number: int
    data: bytes


def encoder(width: int, height: int) -> "av.VideoCodecContext":
    """H.264 without delay: every frame gives a packet at once, and once a second a key frame."""
    context = av.CodecContext.create("libx264", "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height, context.pix_fmt = width, height, "yuv420p"
    context.framerate, context.gop_size = Fraction(FRAMES_PER_S), FRAMES_PER_S
    # One thread, so that the same pictures always become the same bytes.
    context.options = {"preset": "ultrafast", "tune": "zerolatency", "threads": "1"}
    return context


def encoded(context: "av.VideoCodecContext", picture: Picture, number: int) -> bytes:
    """The packet of one picture."""
    frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
    frame.pts = number
    return b"".join(bytes(packet) for packet in context.encode(frame))


def test_picture(feed: int, number: int) -> Picture:
    """A dark slope, a bright square on a circle, and the name of the camera."""
    luma = np.add.outer(np.arange(HEIGHT) // 4, np.arange(WIDTH) // 4).astype(np.uint8) + 20
    angle = 2 * np.pi * (number / CLIP_FRAMES + feed / FEEDS)
    x, y = round(WIDTH / 2 + 90 * np.cos(angle)), round(HEIGHT / 2 + 70 * np.sin(angle))
    luma[y - 20 : y + 20, x - 20 : x + 20] = 230
    image = Image.fromarray(luma)
    ImageDraw.Draw(image).text((12, 8), f"camera {feed + 1}", fill=255, font=ImageFont.load_default(24))
    chroma = [np.full((HEIGHT // 4, WIDTH), tint, np.uint8) for tint in TINTS[feed % FEEDS]]
    return np.vstack([np.asarray(image), *chroma])


@dataclass(frozen=True)
class Cameras:
    """Makes instant k: the packets of the cameras of one group; each plays its clip again and again."""

    groups: int

    @cached_property
    def clips(self) -> list[list[bytes]]:
        """The packets of each camera; made in the process that plays them."""
        contexts = [encoder(WIDTH, HEIGHT) for _ in range(FEEDS)]
        return [
            [encoded(context, test_picture(feed, n), n) for n in range(CLIP_FRAMES)]
            for feed, context in enumerate(contexts)
        ]

    def __call__(self, partition: int, index: int, seed: int) -> list[Packet]:  # noqa: ARG002
        number, group = divmod(index, self.groups)
        return [
            Packet(group, feed, number, clip[number % CLIP_FRAMES]) for feed, clip in enumerate(self.clips)
        ]


@dataclass(frozen=True)
class Feeds:
    """A source of one split: the packets of an instant have the same due time."""

    instants: Paced[list[Packet]]
    name: str = "packets"

    @property
    def splits(self) -> tuple[str, ...]:
        return self.instants.splits

    def start(self, split: str) -> int:
        return self.instants.start(split)

    def open(self, split: str, offset: int, clock: SourceClock) -> "FeedsReader":
        return FeedsReader(self.instants.open(split, offset, clock))


@dataclass
class FeedsReader:
    """Takes instants apart; an instant is read whole or not at all."""

    instants: PacedReader[list[Packet]]

    @property
    def offset(self) -> int:
        return self.instants.offset

    def read(self, limit: int, wait_s: float) -> tuple[list[Packet], list[int] | None] | None:
        found = self.instants.read(max(1, limit // FEEDS), wait_s)
        if found is None:
            return None
        instants, due_ns = found
        packets = [packet for instant in instants for packet in instant]
        return packets, None if due_ns is None else [at for at in due_ns for _ in range(FEEDS)]

    def close(self) -> None:
        self.instants.close()


def feeds(groups: int, seconds: float) -> Feeds:
    """`groups` times four cameras for that long."""
    count = groups * round(seconds * FRAMES_PER_S)
    return Feeds(paced(Cameras(groups), groups * FRAMES_PER_S, count=count))
