"""The audience of Livestream: one file for each group, and at the end a film and a still picture of it."""

import os
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
from PIL import Image

from penstock.apps.livestream_feeds import FRAMES_PER_S, Packet


@dataclass
class Broadcast:
    """Appends every packet to `group-N.h264`; that file can be played at any moment of the run."""

    directory: Path | str
    _files: dict[int, int] = field(init=False, default_factory=dict, repr=False)

    def write(self, item: Packet) -> None:
        if item.group not in self._files:
            path = stream_path(self.directory, item.group)
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._files[item.group] = os.open(path, flags, 0o644)
        os.write(self._files[item.group], item.data)

    def close(self) -> None:
        """Make of each file a film that every player knows, and a still of its last second."""
        for group, descriptor in self._files.items():
            os.close(descriptor)
            path = stream_path(self.directory, group)
            to_film(path, path.with_suffix(".mp4"))
            to_still(path, path.with_suffix(".png"))
        self._files.clear()


def stream_path(directory: Path | str, group: int) -> Path:
    """Where the packets of a group are."""
    return Path(directory).resolve() / f"group-{group}.h264"


def to_film(stream: Path, film: Path) -> None:
    """The same packets in an MP4 file, with the times that a bare stream does not have."""
    with av.open(str(stream), format="h264") as received, av.open(str(film), "w") as container:
        video = container.add_stream_from_template(received.streams.video[0])
        for number, packet in enumerate(p for p in received.demux(video=0) if p.size):
            packet.stream = video
            packet.time_base = Fraction(1, FRAMES_PER_S)
            packet.pts = packet.dts = number
            packet.duration = 1
            container.mux(packet)


def to_still(stream: Path, still: Path) -> None:
    """The last key frame of a stream."""
    last = None
    with av.open(str(stream), format="h264") as received:
        for frame in received.decode(video=0):
            last = frame if frame.key_frame or last is None else last
    if last is not None:
        Image.fromarray(last.to_ndarray(format="rgb24")).save(still)
