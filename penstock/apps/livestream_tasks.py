"""What Livestream does to a frame: decode, merge four into one, draw the ticker, encode."""

from collections.abc import Callable
from typing import Any, NamedTuple

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from penstock.apps.livestream_feeds import FEEDS, HEIGHT, WIDTH, Packet, Picture, encoded, encoder

TICKER_HEIGHT = 36
TICKER_PIXELS_PER_FRAME = 3
GREY, BLACK = 128, 16


class Frame(NamedTuple):
    """A picture of a feed, or the merged picture of a group (feed is None)."""

    group: int
    feed: int | None
    number: int
    picture: Picture


class Decoder:
    """Packets to pictures; every feed has a decoder of its own, which remembers the frames before."""

    def open(self, context: Any) -> None:  # noqa: ARG002
        self._contexts: dict[tuple[int, int | None], av.VideoCodecContext] = {}

    def process(self, item: Packet, out: Callable[[Frame], None]) -> None:
        group, feed, number, data = item
        for frame in self._context(group, feed).decode(av.Packet(data)):
            out(Frame(group, feed, number, frame.to_ndarray().astype(np.uint8, copy=False)))

    def _context(self, group: int, feed: int | None) -> "av.VideoCodecContext":
        if (group, feed) not in self._contexts:
            made = av.CodecContext.create("h264", "r")
            assert isinstance(made, av.VideoCodecContext)
            made.thread_count = 1
            made.flags |= av.codec.context.Flags.low_delay
            self._contexts[group, feed] = made
        return self._contexts[group, feed]


class Merger:
    """Four pictures of a group become one of twice their width and height.

    The feeds of a group arrive in turn, so the last one completes the picture. A feed of which nothing came
    yet, after a change of the process in the middle of an instant, is grey.
    """

    latency_kind = "read_write"

    def open(self, context: Any) -> None:  # noqa: ARG002
        self._pictures: dict[int, dict[int, Picture]] = {}

    def process(self, item: Frame, out: Callable[[Frame], None]) -> None:
        group, feed, number, picture = item
        assert feed is not None
        tiles = self._pictures.setdefault(group, {})
        tiles[feed] = picture
        if feed == FEEDS - 1:
            out(Frame(group, None, number, merged([tiles.get(n, EMPTY) for n in range(FEEDS)])))


class Overlay:
    """Draws a ticker along the lower edge, which moves with the number of the frame."""

    def __init__(self, text: str) -> None:
        self._text = text

    def open(self, context: Any) -> None:  # noqa: ARG002
        self._ribbon = ribbon(self._text, 2 * WIDTH)

    def process(self, item: Frame, out: Callable[[Frame], None]) -> None:
        luma, *chroma = planes(item.picture, 2 * WIDTH, 2 * HEIGHT)
        begin = item.number * TICKER_PIXELS_PER_FRAME % (self._ribbon.shape[1] - 2 * WIDTH)
        luma[-TICKER_HEIGHT:] = self._ribbon[:, begin : begin + 2 * WIDTH]
        for plane in chroma:
            plane[-TICKER_HEIGHT // 2 :] = GREY
        out(item._replace(picture=joined(luma, *chroma)))


class Encoder:
    """Pictures to packets; every group has an encoder of its own."""

    def open(self, context: Any) -> None:  # noqa: ARG002
        self._contexts: dict[int, av.VideoCodecContext] = {}

    def process(self, item: Frame, out: Callable[[Packet], None]) -> None:
        group, feed, number, picture = item
        if group not in self._contexts:
            self._contexts[group] = encoder(2 * WIDTH, 2 * HEIGHT)
        out(Packet(group, feed, number, encoded(self._contexts[group], picture, number)))


def planes(picture: Picture, width: int, height: int) -> tuple[Picture, Picture, Picture]:
    """Copies of the three planes as rows and columns."""
    luma, u, v = np.split(picture.ravel(), [width * height, width * height * 5 // 4])
    half = (height // 2, width // 2)
    return luma.reshape(height, width).copy(), u.reshape(half).copy(), v.reshape(half).copy()


def joined(luma: Picture, u: Picture, v: Picture) -> Picture:
    """The picture of three planes."""
    height, width = luma.shape
    return np.concatenate([luma.ravel(), u.ravel(), v.ravel()]).reshape(height * 3 // 2, width)


def merged(pictures: list[Picture]) -> Picture:
    """Two above two, plane by plane."""
    tiles = [planes(picture, WIDTH, HEIGHT) for picture in pictures]
    return joined(*(np.block([[a, b], [c, d]]) for a, b, c, d in zip(*tiles, strict=True)))


def ribbon(text: str, width: int) -> Picture:
    """The luma of a line of text, with the width of a picture before and behind it."""
    font = ImageFont.load_default(22)
    length = round(font.getlength(text)) + 2 * width
    image = Image.new("L", (length, TICKER_HEIGHT), BLACK)
    ImageDraw.Draw(image).text((width, 4), text, fill=235, font=font)
    return np.asarray(image)


EMPTY = np.full((HEIGHT * 3 // 2, WIDTH), GREY, np.uint8)
