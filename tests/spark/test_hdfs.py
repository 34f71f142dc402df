"""A checkpoint on HDFS: its log and files of state, from the driver and from workers."""

import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import app
from penstock.epochs.entries import state_name
from penstock.epochs.errors import SupersededError
from penstock.epochs.log import Log, newest_entry
from penstock.epochs.looking import look
from penstock.epochs.remote_storage import RemoteFiles, RemoteStorage
from penstock.epochs.storage import UNFINISHED
from penstock.spark.commits import CommitBy
from penstock.spark.directory import Directory
from penstock.spark.hadoop_files import HadoopFiles, refusal
from penstock.testing.collector import Collector
from penstock.testing.kafka_jars import JarsError
from tests.epochs.crashing_disk import Crash
from tests.epochs.crashing_files import CUTS
from tests.epochs.test_log import check_after_a_crash, commit, drive, history
from tests.spark.hdfs import Hdfs
from tests.spark.items import Item, numbered, wait_for_items
from tests.spark.test_cluster import ran
from tests.spark.test_marks import until
from tests.spark.test_state_commits import Counts, DiesOnce, Killed, last_digit

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def hdfs() -> Iterator[Hdfs]:
    try:
        started = Hdfs().__enter__()
    except JarsError as problem:
        pytest.skip(str(problem))
    yield started
    started.__exit__(None, None, None)


@pytest.fixture
def address(hdfs: Hdfs) -> str:
    return f"{hdfs.address}/{uuid.uuid4().hex}"


class Ending:
    """Files whose user ends before a call, after it, or while it makes a file."""

    def __init__(self, files: RemoteFiles, at: int) -> None:
        self._files = files
        self._left = at
        self._cut = CUTS[at % len(CUTS)]

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> Any:
            self._left -= 1
            if self._left > 0:
                return getattr(self._files, name)(*given)
            if self._cut == "half" and name == "create":
                self._files.create(f"{given[0].rpartition('/')[0]}/{UNFINISHED}half", given[1][:10])
            if self._cut == "after":
                getattr(self._files, name)(*given)
            raise Crash

        return call


def test_files_appear_whole_once_and_are_named(spark: SparkSession, address: str) -> None:
    files = HadoopFiles(spark, address)
    storage = RemoteStorage(files)
    assert storage.names("log") == []
    assert storage.read("log/1") is None
    content = bytes(range(256)) * 1000
    assert storage.create("log/1", content)
    assert not storage.create("log/1", b"two")
    assert storage.read("log/1") == content
    assert files.create("log/.new-left", b"half")
    assert storage.names("log") == ["log/1"]
    storage.sweep("log")
    assert files.names("log") == ["1"]
    storage.delete("log/1")
    storage.delete("log/1")
    assert storage.names("log") == []
    with pytest.raises(OSError, match="is not below"):
        storage.read("../elsewhere")


@pytest.mark.slow
def test_the_log_survives_the_end_of_its_driver_at_every_operation(spark: SparkSession, address: str) -> None:
    """Of a few commits, with garbage to collect."""
    for at in range(1, 21):
        files = HadoopFiles(spark, f"{address}/{at}")
        told: list[str] = []
        with pytest.raises(Crash):
            drive(RemoteStorage(Ending(files, at)), told, "a")
        check_after_a_crash(RemoteStorage(files), told, at)
        assert [name for name in files.names("log") if name.startswith(".")] == []


def test_a_driver_that_was_replaced_finds_out(spark: SparkSession, address: str) -> None:
    storage = RemoteStorage(HadoopFiles(spark, address))
    first = Log.begin(storage)
    commit(first, "a")
    second = Log.begin(RemoteStorage(HadoopFiles(spark, address)))
    with pytest.raises(SupersededError, match="is another driver's"):
        commit(first, "b")
    commit(second, "c")
    assert history(storage) == ["a", "c"]


def test_what_cannot_be_safe_is_refused_in_words(spark: SparkSession, address: str) -> None:
    assert refusal(spark, address) is None
    words = "files of file: cannot be renamed in one step that never overwrites, so two drivers could commit"
    assert str(refusal(spark, "file:/tmp/checkpoint")).startswith(words)


COUNT = 400
DIES_AT = 350


def counting(collector: Collector, replicas: int, witness: Path | None) -> ps.Flow:
    flow = ps.Flow("kept")
    passed = flow.source(numbered(COUNT, rate=200), name="numbers").task(
        DiesOnce(witness, DIES_AT), name="pass"
    )
    counts = passed.by_key(last_digit).task(Counts(None, 0), name="counts", parallelism=replicas)
    counts.sink(collector, name="out")
    return flow


@pytest.mark.parametrize("commit_by", [pytest.param("boundaries", marks=pytest.mark.slow), "marks"])
def test_state_is_exact_over_a_stop_and_a_death(
    spark: SparkSession, collector: Collector, tmp_path: Path, address: str, commit_by: CommitBy
) -> None:
    """Stopped, started from an older commit with other replicas, and once from its last, as a worker died."""

    def run(replicas: int, from_commit: int | None = None) -> ps.Job:
        flow = counting(collector, replicas, None if from_commit is None else tmp_path / "died")
        return ps.run(
            flow,
            checkpoint=address,
            commit="500 ms" if commit_by == "marks" else "1 s",
            commit_by=commit_by,
            from_commit=from_commit,
            on_notice=notices.append,
        )

    notices: list[str] = []
    job = run(2)
    wait_for_items(collector, 200)  # two of each item
    if commit_by == "boundaries":  # the first comes about now; the stop is to make another
        until(lambda: bool(Directory(spark, address).names("commits")))
        wait_for_items(collector, len(collector.items()) + 40)
    job.stop()
    oldest, *_, newest = numbers_of(address)
    job = run(3, from_commit=oldest)
    (told,) = (words for words in notices if "were put aside, into" in words)
    assert numbers_of(told.partition("into ")[2])[-1] == newest
    assert job.await_termination(90)
    assert (tmp_path / "died").exists()
    assert job.metrics().restarts == 1
    kept = job.state("counts")
    assert {one.key: one.value for one in kept if one.name == "seen"} == dict.fromkeys(range(10), COUNT // 10)
    assert sum(one.value for one in kept if one.name == "taken") == COUNT
    assert not [words for words in notices if "in the memory of its workers" in words]
    look_through(address, tmp_path / "copy", job)


def numbers_of(address: str) -> list[int]:
    """Of the commits that a flow can start from."""
    return [json.loads(line)["commit"] for line in asked("checkpoint", "list", address, "--json")]


def look_through(address: str, copy: Path, job: ps.Job) -> None:
    """By the command line, which fetches what is elsewhere."""
    assert any("counts" in line for line in asked("state", address))
    numbers = numbers_of(address)
    assert len(numbers) > 1
    assert f"commits that are whole: {', '.join(map(str, numbers))}" in asked("checkpoint", "check", address)
    asked("checkpoint", "copy", address, copy)
    assert sorted(map(str, look(copy).kept["counts"])) == sorted(map(str, job.state("counts")))
    asked("checkpoint", "copy", copy, f"{address}-copy")
    (told,) = asked("checkpoint", "prune", f"{address}-copy", "--keep", 1)
    assert told.startswith("commits that are left:")
    left = numbers_of(f"{address}-copy")
    # By boundaries the newest may go on from the one before, which stays whole then.
    assert left == numbers[-1:] or (job.metrics().commits is None and left == numbers[-2:])
    assert asked("checkpoint", "check", f"{address}-copy")[0].startswith("commits that are whole: ")
    assert "is there already" in " ".join(asked("checkpoint", "copy", copy, f"{address}-copy", code=2))
    assert "is no directory" in " ".join(asked("checkpoint", "prune", f"{address}-none", code=2))


def asked(*arguments: object, code: int = 0) -> list[str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return str(result.output).splitlines()


@pytest.mark.slow
def test_a_file_that_cannot_be_uploaded_sends_the_flow_back(
    spark: SparkSession, collector: Collector, tmp_path: Path, address: str
) -> None:
    """Its worker has gone on long since: no commit may name the file, and no item may be missed."""
    (tmp_path / "died").touch()
    flow = counting(collector, 2, tmp_path / "died")
    notices: list[str] = []
    job = ps.run(flow, checkpoint=address, commit="300 ms", on_notice=notices.append)
    storage = RemoteStorage(HadoopFiles(spark, f"{address}/epochs"))
    wait_for_items(collector, 100)
    entry = newest_entry(storage)
    assert entry is not None
    for epoch in range(entry.epoch + 4, entry.epoch + 7):  # all are there before the flow meets the first
        storage.create(state_name("counts", 1, entry.attempt, epoch, "changes"), b"another's")
    assert job.await_termination(90)
    assert job.metrics().restarts == 1
    assert any("state cannot be written to the checkpoint" in words for words in notices), notices
    kept = job.state("counts")
    assert {one.value for one in kept if one.name == "seen"} == {COUNT // 10}


def test_an_item_that_kills_goes_the_way_of_on_error(
    spark: SparkSession, collector: Collector, tmp_path: Path, address: str
) -> None:
    """What a worker shows of itself comes by its executor."""
    flow = ps.Flow("killed")
    keyed = flow.source(numbered(COUNT, rate=400), name="numbers").by_key(last_digit)
    counts = keyed.task(Killed(None, 0), name="counts", on_error="dead_letter", parallelism=2)
    counts.sink(collector, name="out")
    job = ps.run(flow, checkpoint=address, dead_letters=tmp_path / "letters")
    assert job.await_termination(90)
    assert job.metrics().tasks["counts"].dead_lettered == 1
    assert job.metrics().restarts == 3
    seen = {one.key: one.value for one in job.state("counts") if one.name == "seen"}
    assert seen == {digit: COUNT // 10 - (digit == 0) for digit in range(10)}


class Gathered:
    """Prepares files in the checkpoint; in the driver those of a commit become one file elsewhere."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.items: list[int] = []

    def open(self, context: Any) -> None:
        self.context = context
        context.prepared_in.mkdir(parents=True, exist_ok=True)

    def write(self, item: Item) -> None:
        self.items.append(item.index)

    def prepare(self, epoch: int) -> str | None:
        name = f"{self.context.attempt}-{epoch:06d}-{self.context.replica}"
        (self.context.prepared_in / name).write_text(json.dumps(self.items))
        self.items = []
        return name

    def committer(self, context: Any) -> "Gathering":
        return Gathering(self.target, context.prepared_in)


class Gathering:
    def __init__(self, target: Path, prepared_in: Path) -> None:
        self.target = target
        self.prepared_in = prepared_in

    def commit(self, attempt: int, epoch: int, descriptions: Sequence[str]) -> None:
        files = [self.prepared_in / name for name in descriptions]
        target = self.target / f"{attempt}-{epoch}"
        if not target.exists():
            target.write_text(json.dumps([item for file in files for item in json.loads(file.read_text())]))
        for file in files:
            file.unlink(missing_ok=True)

    def close(self) -> None: ...


def test_files_that_sinks_prepare_come_to_the_driver(
    spark: SparkSession, tmp_path: Path, address: str
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    flow = ps.Flow("gathered")
    passed = flow.source(numbered(COUNT, rate=200), name="numbers").task(DiesOnce(tmp_path / "died", 200))
    passed.sink(Gathered(target), name="out", parallelism=2)
    job = ps.run(flow, checkpoint=address, commit="200 ms")
    assert job.await_termination(90)
    assert job.metrics().restarts == 1
    found = [item for file in target.iterdir() for item in json.loads(file.read_text())]
    assert sorted(found) == [*range(COUNT)], "each of them once"
    assert not HadoopFiles(spark, f"{address}/epochs").names("prepared")


KILLED = """
import json, os, signal, sys, time
import penstock as ps
from penstock.faults.victims import carriers
from penstock.testing.collector import Collector
from tests.spark.items import numbered
from tests.spark.test_state_commits import Counts, last_digit

COUNT = 4000

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    flow = ps.Flow("cluster")
    source = flow.source(numbered(COUNT, rate=400, partitions=2), name="numbers")
    counts = source.by_key(last_digit).task(Counts(None, 0), name="counts", parallelism=4)
    counts.sink(collector, name="out")
    conf = json.loads(os.environ.get("CONF", "{}"))
    job = ps.run(
        flow, checkpoint=os.environ["ADDRESS"], commit="500 ms", master="local-cluster[2,8,1024]", conf=conf
    )
    while job.metrics().commits.count < 4 or len(collector.items()) < 2000:
        time.sleep(0.02)
    os.kill(carriers(job)[0], signal.SIGKILL)
    ended = job.await_termination(120)
    kept = job.state("counts")
    print(json.dumps({
        "ended": ended,
        "restarts": job.metrics().restarts,
        "seen": {one.key: one.value for one in kept if one.name == "seen"},
        "taken": sum(one.value for one in kept if one.name == "taken"),
    }))
    collector.close()
"""


@pytest.mark.slow
def test_state_on_separate_executors_survives_one_of_them(
    hdfs: Hdfs, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDRESS", address)
    found = ran(KILLED, tmp_path)
    assert found["ended"]
    assert found["restarts"] >= 1
    assert found["seen"] == {str(key): 400 for key in range(10)}
    assert found["taken"] == 4000
