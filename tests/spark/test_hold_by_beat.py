"""Checkpoints on other file systems: a file that changes is held, one that does not is anybody's."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.flow.errors import FlowError
from penstock.spark import holding
from penstock.spark.directory import Directory
from penstock.spark.hold_by_beat import BeatHold
from penstock.spark.holder import FILE, Holder, encoded, new_holder
from penstock.testing.collector import Collector
from tests.spark.items import numbered
from tests.spark.test_crashes import wait_for

pytestmark = pytest.mark.spark

BEAT_S = 0.1


def me(flow: str, system: str = "elsewhere") -> Holder:
    """A driver of another machine, unless it is said to be near."""
    return msgspec.structs.replace(new_holder(flow, [os.getpid()]), system=system)


def take(directory: Directory, holder: Holder, **times: float) -> BeatHold:
    return BeatHold(directory, holder, **{"beat_s": BEAT_S, "watch_s": 1.0, "settle_s": 0.2, **times})


def rob(directory: Directory, thief: Holder, until: Callable[[], bool]) -> None:
    """Beat as the thief: one write may fall between another's look and its beat."""

    def beat() -> bool:
        directory.write(FILE, encoded(thief))
        return until()

    wait_for(beat)


@pytest.fixture
def directory(spark: SparkSession, tmp_path: Path) -> Directory:
    made = Directory(spark, f"file:{tmp_path}/checkpoint")
    made.prepare()
    return made


def test_one_that_beats_is_named_and_one_that_is_released_is_followed_at_once(directory: Directory) -> None:
    first = take(directory, me("first"))
    with pytest.raises(
        FlowError, match=r'checkpoint file:.* is held by flow "first" on .*, process \d+, since'
    ):
        take(directory, me("second"))
    first.release()
    assert directory.text(FILE) is None
    began_s = time.monotonic()
    take(directory, me("second")).release()
    assert time.monotonic() - began_s < 0.9, "nobody is to be watched"


def test_a_silent_one_is_followed_after_a_while_and_a_dead_one_that_is_near_at_once(
    directory: Directory,
) -> None:
    directory.write(FILE, encoded(me("silent")) + "3\n")
    began_s = time.monotonic()
    take(directory, me("second")).release()
    assert 1.0 <= time.monotonic() - began_s < 5
    dead = msgspec.structs.replace(new_holder("dead", []), processes=["1 1"])
    directory.write(FILE, encoded(dead) + "3\n")
    began_s = time.monotonic()
    take(directory, me("third"), watch_s=60).release()
    assert time.monotonic() - began_s < 5


def test_a_torn_file_is_nobodys(directory: Directory) -> None:
    directory.write(FILE, '{"flow": "to')
    take(directory, me("second")).release()


def test_of_two_that_begin_together_one_has_it(directory: Directory) -> None:
    outcomes: list[Any] = []

    def begin(flow: str) -> None:
        try:
            outcomes.append(take(directory, me(flow)))
        except FlowError as refused:
            outcomes.append(str(refused))

    threads = [threading.Thread(target=begin, args=[name]) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [one for one in outcomes if isinstance(one, BeatHold)]
    assert len(taken) == 1, outcomes
    taken[0].release()


def test_a_holder_whose_place_is_taken_hears_of_it_and_leaves_the_file(directory: Directory) -> None:
    heard: list[Holder] = []
    first, other = take(directory, me("first")), me("other")
    first.when_taken(heard.append)
    rob(directory, other, lambda: bool(heard))
    assert heard == [other]
    late: list[Holder] = []
    first.when_taken(late.append)
    assert late == [other], "it had happened already"
    first.release()
    assert directory.text(FILE) == encoded(other)


def test_a_flow_whose_checkpoint_is_taken_ends_in_words(
    spark: SparkSession,
    collector: Collector,
    directory: Directory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_beat(spark: SparkSession, address: str, flow: str) -> BeatHold:
        made = Directory(spark, address)
        made.prepare()
        return take(made, me(flow))

    monkeypatch.setattr("penstock.spark.run.hold", by_beat)
    flow = ps.Flow("robbed")
    flow.source(numbered(100_000, rate=500), name="numbers").sink(collector, name="out")
    job = ps.run(flow, checkpoint=directory.address)
    wait_for(lambda: len(collector.items()) > 100)
    rob(directory, me("thief"), lambda: not job.is_running)
    with pytest.raises(
        ps.JobFailed, match=r'flow "robbed": its checkpoint file:.* was taken over by flow "thief" on'
    ):
        job.await_termination(30)
    assert job.stop() is None


def test_file_systems_without_locks_are_held_by_beats(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(number: int) -> Callable[..., None]:
        def lock(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        return lock

    monkeypatch.setattr("fcntl.flock", raising(holding._NO_LOCKS[0]))
    began_s = time.monotonic()
    held = holding.hold(spark, str(tmp_path), "f")
    assert time.monotonic() - began_s < 8, "there was nobody to be watched"
    assert isinstance(held, BeatHold)
    held.release()
    monkeypatch.setattr("fcntl.flock", raising(13))
    with pytest.raises(FlowError, match=rf"the checkpoint {tmp_path} cannot be held: Permission denied"):
        holding.hold(spark, str(tmp_path), "f")
