"""Checkpoints: positions by source and split, and refusals in words before anything is started."""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.spark.checkpoint import TemporaryCheckpoint, check_sources, checkpoint_address
from penstock.testing.collector import Collector
from penstock.wire.orders import Position
from tests.spark.items import Item, expected, numbered
from tests.spark.test_crashes import wait_for

LINES = re.compile(r"\n\s*at ")


def marked(name: str) -> Callable[[Item], tuple[str, Item]]:
    return lambda item: (name, item)


def two_sources(collector: Collector, names: list[str], count: int = 3000) -> ps.Flow:
    flow = ps.Flow("pair")
    for name in names:
        source = flow.source(numbered(count, rate=1000), name=name)
        source.map(marked(name), name=f"mark_{name}").sink(collector, name=f"out_{name}")
    return flow


@pytest.mark.spark
def test_sources_may_be_declared_in_any_order(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    for names in (["a", "b"], ["b", "a"]):
        job = ps.run(two_sources(collector, names), checkpoint=tmp_path)
        before = len(collector.items())
        wait_for(lambda before=before: len(collector.items()) > before + 600)
        job.stop()
    job = ps.run(two_sources(collector, ["c", "b", "a"]), checkpoint=tmp_path)
    assert job.await_termination(60)
    seen = Counter(collector.items())
    assert seen == Counter((name, item) for name in "abc" for item in expected(3000))


@pytest.mark.spark
def test_a_checkpoint_that_cannot_be_used_is_refused_in_words(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    def refusal(place: Path, names: list[str]) -> str:
        with pytest.raises(ps.FlowError) as refused:
            ps.run(two_sources(collector, names, count=10), checkpoint=place)
        assert not LINES.search(str(refused.value))
        assert "Exception" not in str(refused.value)
        return str(refused.value)

    file = tmp_path / "file"
    file.write_text("something")
    assert refusal(file, ["a"]) == f"the checkpoint {file} is a file; give a directory"
    assert refusal(file / "below", ["a"]).startswith(f"the checkpoint {file}/below cannot be ")
    place = tmp_path / "checkpoint"
    assert ps.run(two_sources(collector, ["a", "b"], count=10), checkpoint=place).await_termination(60)
    assert 'knows the source "b", which flow "pair" does not have (it has "a")' in refusal(place, ["a"])
    assert 'knows the source "b"' in refusal(place, ["a", "renamed"])
    newest = max((place / "epochs" / "log").iterdir())
    whole = newest.read_bytes()
    words = f"the commits in the checkpoint {place} cannot be used: log/{newest.name}"
    for torn in (whole[: len(whole) // 2], b"", whole.replace(b'"a"', b'"c"')):
        newest.write_bytes(torn)
        assert words in refusal(place, ["a", "b"])
    newest.write_bytes(whole)
    assert ps.run(two_sources(collector, ["a", "b"], count=10), checkpoint=place).await_termination(60)


@pytest.mark.spark
def test_a_checkpoint_of_boundaries_that_cannot_be_used_is_refused_in_words(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    def flow() -> ps.Flow:
        return two_sources(collector, ["a", "b"], count=10)

    def refusal() -> str:
        with pytest.raises(ps.FlowError) as refused:
            ps.run(flow(), checkpoint=tmp_path)
        return str(refused.value)

    assert ps.run(flow(), checkpoint=tmp_path, commit_by="boundaries").await_termination(60)
    offsets = tmp_path / "offsets" / "0"
    whole = offsets.read_text()
    for torn in (whole[: len(whole) // 2], "", whole.replace('"version":2', '"version":3')):
        offsets.write_text(torn)
        assert f"the checkpoint file {offsets} cannot be used" in refusal()
    old = [*whole.splitlines()[:2], '{"0":{"ordinal":1,"offset":1,"done":false}}']
    offsets.write_text("\n".join(old))
    assert "of an older format" in refusal()
    offsets.unlink()
    assert "it is missing, though its batch is committed" in refusal()


class Numbered:
    """Adds the batch."""

    def open(self, context: Any) -> None:
        self.context = context
        self.opened_in = context.batch

    def process(self, item: Item, out: Any) -> None:
        out((self.context.batch, self.opened_in, item))


@pytest.mark.spark
def test_a_batch_has_the_same_number_in_a_replay(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    def start(name: str) -> ps.Job:
        flow = ps.Flow("batches")
        flow.source(numbered(4000, rate=1000), name="numbers").task(Numbered, name=name).sink(
            collector, name="out"
        )
        return ps.run(flow, checkpoint=tmp_path, commit_by="boundaries")

    job = start("first")
    wait_for(lambda: len(collector.items()) > 300)
    job.boundary()
    wait_for(lambda: max(batch for batch, _, _ in collector.items()) == 1)
    job.abandon()
    replayed = {item for batch, _, item in collector.items() if batch == 1}
    collector.clear()
    job = start("second")
    wait_for(lambda: replayed <= {item for _, _, item in collector.items()})
    job.boundary()
    assert job.await_termination(60)
    batches = {item: (batch, opened) for batch, opened, item in collector.items()}
    assert replayed
    assert {batches[item] for item in replayed} == {(1, 1)}
    assert {batch for batch, _ in batches.values()} == {1, 2}


class Stubborn:
    """A sink that cannot keep its promise."""

    def __init__(self, collector: Collector, hook: str) -> None:
        self.collector = collector
        self.hook = hook

    def open(self, context: Any) -> None:
        self.collector.open(context)

    def write(self, item: Any) -> None:
        self.collector.write(item)

    def flush(self) -> None:
        if self.hook == "flush":
            raise OSError("no room for what was written")

    def close(self) -> None:
        if self.hook == "close":
            raise OSError("no room for what was written")


@pytest.mark.spark
@pytest.mark.parametrize("hook", ["flush", "close"])
def test_stop_tells_what_went_wrong_in_the_drain_and_commits_nothing(
    spark: SparkSession, collector: Collector, tmp_path: Path, hook: str
) -> None:
    def flow(sink: Any) -> ps.Flow:
        made = ps.Flow("honest")
        made.source(numbered(2000, rate=500), name="numbers").sink(sink, name="out")
        return made

    job = ps.run(flow(Stubborn(collector, hook)), checkpoint=tmp_path, commit="10 min")
    wait_for(lambda: len(collector.items()) > 200)
    with pytest.raises(
        ps.JobFailed, match=rf'flow "honest", task "out", replica 0: {hook}\(\) raised OSError: no room'
    ):
        job.stop()
    assert job.status.state == "failed"
    assert "no room" in str(job.exception())
    collector.clear()
    assert ps.run(flow(collector), checkpoint=tmp_path).await_termination(60)
    assert Counter(collector.items()) == Counter(expected(2000)), "all of it was replayed"


def test_only_temporary_checkpoints_of_the_dead_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.run(
        [
            sys.executable,
            "-c",
            "import penstock.spark.checkpoint as c; print(c.TemporaryCheckpoint().address)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ).stdout.strip()
    foreign = tmp_path / "penstock-checkpoint-of-somebody"
    foreign.mkdir()
    assert Path(dead).is_dir()
    first, second = TemporaryCheckpoint(), TemporaryCheckpoint()
    assert not Path(dead).exists()
    assert {Path(first.address).exists(), Path(second.address).exists(), foreign.exists()} == {True}
    first.remove()
    second.remove()
    assert list(tmp_path.iterdir()) == [foreign]


def test_addresses_of_file_systems_stay_as_they_are() -> None:
    assert checkpoint_address("hdfs://there:9000/flow") == "hdfs://there:9000/flow"
    assert checkpoint_address("file:/tmp/flow") == "file:/tmp/flow"
    assert checkpoint_address("flow") == str(Path.cwd() / "flow")


def test_new_sources_and_splits_are_carried_on() -> None:
    at = Position(5, 5)
    known = {"a": {"0": at}}
    check_sources("f", "there", known, {"b": {"0": at}, "a": {"1": at, "0": at}})
    with pytest.raises(ps.FlowError, match=r'split "0" of source "a".*it has 1'):
        check_sources("f", "there", known, {"a": {"1": at}})
