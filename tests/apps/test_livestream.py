"""Livestream: real H.264 in and out, the same as in a single process, chained or not."""

import pickle
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import penstock
from penstock.apps import livestream_feeds as video
from penstock.apps.livestream import ENVELOPE_BYTES, TICKER, livestream_flow
from penstock.apps.livestream_files import Broadcast, stream_path
from penstock.apps.livestream_tasks import (
    EMPTY,
    TICKER_HEIGHT,
    Decoder,
    Encoder,
    Frame,
    Merger,
    Overlay,
    joined,
    merged,
    planes,
)
from penstock.extras import MissingExtraError
from penstock.flow.chains import pipelines
from penstock.flow.layers import lay_out
from penstock.io.protocol import SourceClock
from penstock.testing import run

CHAIN = ["decoder", "merger", "overlay", "encoder"]


def through(task: Any, items: Iterable[Any]) -> list[Any]:
    """Everything that a task makes of items."""
    out: list[Any] = []
    task.open(None)
    for item in items:
        task.process(item, out.append)
    return out


def single_process(groups: int, frames: int) -> list[video.Packet]:
    """The oracle: the same tasks one after the other."""
    cameras = video.Cameras(groups)
    items: list[Any] = [packet for k in range(groups * frames) for packet in cameras(0, k, 0)]
    for task in (Decoder(), Merger(), Overlay(TICKER), Encoder()):
        items = through(task, items)
    return items


def decoded(path: Path) -> list[Any]:
    with av.open(str(path)) as film:
        return [frame.to_ndarray(format="yuv420p") for frame in film.decode(video=0)]


def test_every_packet_gives_a_picture_at_once() -> None:
    packets = video.Cameras(1)(0, 0, 0)
    frames = through(Decoder(), packets)
    assert [(frame.feed, frame.number) for frame in frames] == [(feed, 0) for feed in range(video.FEEDS)]
    difference = np.abs(frames[0].picture.astype(int) - video.test_picture(0, 0))
    assert difference.mean() < 4


def test_an_envelope_holds_the_pictures_of_two_instants() -> None:
    one = Frame(1, 3, 10**6, video.test_picture(3, 7))
    whole = Frame(1, None, 10**6, merged([one.picture] * video.FEEDS))
    sizes = [len(pickle.dumps(frame, protocol=pickle.HIGHEST_PROTOCOL)) for frame in (one, whole)]
    assert [ENVELOPE_BYTES // size for size in sizes] == [2 * video.FEEDS, 2]


def test_the_merged_picture_has_each_feed_in_its_corner() -> None:
    pictures = [video.test_picture(feed, 7) for feed in range(video.FEEDS)]
    whole = planes(merged(pictures), 2 * video.WIDTH, 2 * video.HEIGHT)
    for feed, picture in enumerate(pictures):
        row, column = divmod(feed, 2)
        for plane, tile in zip(whole, planes(picture, video.WIDTH, video.HEIGHT), strict=True):
            height, width = tile.shape
            corner = plane[row * height : (row + 1) * height, column * width : (column + 1) * width]
            assert np.array_equal(corner, tile)


def test_planes_can_be_taken_apart_and_joined() -> None:
    picture = video.test_picture(2, 3)
    assert np.array_equal(joined(*planes(picture, video.WIDTH, video.HEIGHT)), picture)


def test_a_merger_that_begins_in_the_middle_of_an_instant_loses_no_picture() -> None:
    frames = [Frame(0, feed, 5, video.test_picture(feed, 5)) for feed in (2, 3)]
    (found,) = through(Merger(), frames)
    assert found.number == 5
    assert np.array_equal(found.picture, merged([EMPTY, EMPTY, frames[0].picture, frames[1].picture]))


def test_the_ticker_moves_and_the_rest_stays() -> None:
    empty = merged([EMPTY] * 4)
    before, after = through(Overlay("moving text"), [Frame(0, None, 150, empty), Frame(0, None, 151, empty)])
    height = 2 * video.HEIGHT
    strips = [frame.picture[height - TICKER_HEIGHT : height] for frame in (before, after)]
    assert not np.array_equal(*strips)
    assert np.array_equal(strips[0][:, 3:], strips[1][:, :-3])
    assert np.array_equal(before.picture[: height - TICKER_HEIGHT], empty[: height - TICKER_HEIGHT])
    assert np.all(empty == 128)


def test_packets_of_an_instant_come_together_and_can_be_read_again() -> None:
    source = video.feeds(groups=2, seconds=1)
    clock = SourceClock(run_start_ns=0, run_offset=0, now_ns=lambda: 10**10)

    def read(offset: int, limit: int) -> tuple[list[Any], list[int] | None]:
        reader = source.open(source.splits[0], offset, clock)
        found = reader.read(limit, 0.0)
        assert found is not None
        assert reader.offset == offset + len(found[0]) // video.FEEDS
        return found

    items, due = read(0, 8)
    assert [(p.group, p.feed, p.number) for p in items] == [(g, f, 0) for g in (0, 1) for f in range(4)]
    assert due is not None
    assert len(set(due[:4])) == len(set(due[4:])) == 1
    assert read(1, 4)[0] == items[4:]
    assert len(read(0, 1000)[0]) == 2 * 25 * 4
    assert source.open(source.splits[0], 50, clock).read(10, 0.0) is None


@pytest.mark.parametrize("chains", [[], [CHAIN]])
def test_the_films_are_those_of_a_single_process_chained_or_not(chains: list[list[str]]) -> None:
    flow = livestream_flow(print, groups=2, pipelines=2, seconds=0.4, lifetime="5 ms")
    found, expected = run(flow, chains=chains)["broadcast"], single_process(groups=2, frames=10)
    for group in range(2):
        assert [p for p in found if p.group == group] == [p for p in expected if p.group == group]
    assert len(found) == len(expected) == 20


def test_files_are_a_film_and_a_still(tmp_path: Path) -> None:
    packets = single_process(groups=1, frames=30)
    sink = Broadcast(tmp_path)
    for packet in packets:
        sink.write(packet)
    path = stream_path(tmp_path, 0)
    assert path.read_bytes() == b"".join(packet.data for packet in packets)
    sink.close()
    assert len(decoded(path.with_suffix(".mp4"))) == 30
    with av.open(str(path.with_suffix(".mp4"))) as film:
        assert film.duration == pytest.approx(30 / 25 * 1e6)
    with Image.open(path.with_suffix(".png")) as still:
        assert still.size == (2 * video.WIDTH, 2 * video.HEIGHT)


def test_the_pipeline_can_be_chained() -> None:
    layout = lay_out(livestream_flow(print).graph())
    assert CHAIN in pipelines(layout)
    assert layout.slots == 3


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "penstock.apps.livestream")
    monkeypatch.setattr("penstock.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"livestream needs av; install penstock\[livestream\]"):
        __import__("penstock.apps.livestream")


@pytest.mark.spark
def test_on_spark_the_films_are_those_of_a_single_process(tmp_path: Path) -> None:
    flow = livestream_flow(Broadcast(tmp_path), groups=2, pipelines=2, seconds=2)
    assert penstock.run(flow, policy=None).await_termination(90)
    expected = single_process(groups=2, frames=50)
    for group in range(2):
        path = stream_path(tmp_path, group)
        assert path.read_bytes() == b"".join(p.data for p in expected if p.group == group)
        assert len(decoded(path.with_suffix(".mp4"))) == 50


@pytest.mark.spark
def test_no_frame_is_lost_while_tasks_are_chained_and_taken_apart(tmp_path: Path) -> None:
    job = penstock.run(livestream_flow(Broadcast(tmp_path), groups=2, seconds=4), policy=None)
    for chains in ([CHAIN], [], [CHAIN]):
        assert not job.await_termination(1)
        job.set_chains(chains)
    assert job.await_termination(90)
    for group in range(2):
        assert len(decoded(stream_path(tmp_path, group).with_suffix(".mp4"))) == 100
