"""Dead letters played back on Spark: each item enters where it failed, and none is lost or doubled."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import app
from penstock.io.letters import Letter, pickled
from penstock.spark.dead_letters import Replayed
from tests.spark.items import Item, numbered

pytestmark = pytest.mark.spark


class Repaired:
    """Fails at some items until it is repaired, which a file tells; then at one of them still."""

    def __init__(self, repaired: Path) -> None:
        self.repaired = repaired

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, item: Item, out: Any) -> None:
        if item.index % 10 == 3 and (not self.repaired.exists() or item.index == 43):
            raise ValueError(f"not {item.index}")
        out((item.index, self.context.input))


def first(item: Item) -> Item:
    return item


def flow_of(place: Path) -> ps.Flow:
    flow = ps.Flow("mended", ids=True)
    seen = flow.source(numbered(100, rate=2000), name="numbers").map(first)
    mended = seen.task(Repaired(place / "repaired"), name="mend", on_error="dead_letter", parallelism=2)
    mended.sink(ps.dedup_jsonl(place / "out"), name="out")
    return flow


def written(place: Path) -> list[dict[str, Any]]:
    lines = [line for part in (place / "out").glob("*.jsonl") for line in part.read_text().splitlines()]
    return sorted(map(json.loads, lines), key=lambda line: line["item"])


def test_each_letter_enters_where_it_failed_and_those_that_fail_again_are_letters_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    letters = tmp_path / "letters"
    ps.run(flow_of(tmp_path), dead_letters=letters).await_termination(60)
    assert len(written(tmp_path)) == 90
    (tmp_path / "repaired").touch()
    assert ps.replay_dead_letters(flow_of(tmp_path), letters) == [Replayed("mend", 10, 1, 0)]
    lines = written(tmp_path)
    assert [line["item"] for line in lines] == [[k, "first->mend"] for k in range(100) if k != 43]
    assert [line["id"][1] for line in lines] == [k for k in range(100) if k != 43], "ids are what they were"
    again = [line for part in letters.glob("replay-1/*.jsonl") for line in part.read_text().splitlines()]
    assert [json.loads(line)["error"] for line in again] == ["ValueError: not 43"]
    assert ps.replay_dead_letters(flow_of(tmp_path), letters) == [Replayed("mend", 1, 1, 0)]
    assert len(written(tmp_path)) == 99


FLOW = """
import pathlib
import penstock

def half(item):
    if item % 2 and not pathlib.Path(__file__).with_name("repaired").exists():
        raise ValueError("odd")
    return item

def make(on_error="dead_letter"):
    flow = penstock.Flow("halves")
    numbers = flow.source(penstock.paced(lambda p, index, seed: index, 1000, count=20), name="numbers")
    numbers.map(half, on_error=on_error).sink(penstock.jsonl("out"), name="out")
    return flow
"""


def test_from_the_command_line(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "halves_flow.py").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    runner = CliRunner()
    assert runner.invoke(app, ["run", "halves_flow:make"]).exit_code == 0
    with Path("dead_letters/halves/half-0.jsonl").open("a") as file:
        file.write('{"task": "ha')
    failed = runner.invoke(app, ["replay-dead-letters", "halves_flow:make", "-o", "on_error=fail"])
    assert failed.exit_code == 1, failed.output
    assert 'flow "halves", task "half", replica 0: ValueError: odd' in failed.stderr
    assert "not marked as replayed" in failed.stderr
    Path("repaired").touch()
    done = runner.invoke(app, ["replay-dead-letters", "halves_flow:make"])
    assert done.exit_code == 0, done.output
    assert "half-0.jsonl ends with 12 bytes of half a letter, which are left there" in done.stderr
    assert "half: 10 letters replayed, 0 failed again\n" in done.stderr
    assert sorted(map(json.loads, Path("out/part-00000.jsonl").read_text().splitlines())) == list(range(20))
    over = runner.invoke(app, ["replay-dead-letters", "halves_flow:make"])
    assert over.exit_code == 2
    assert "no dead letters wait in" in over.stderr


SLOW = """
import time
import penstock

def slowly(item):
    time.sleep(0.05)
    return item

flow = penstock.Flow("slow", ids=True)
numbers = flow.source(penstock.paced(lambda p, index, seed: index, 1000, count=20), name="numbers")
numbers.map(slowly).sink(penstock.dedup_jsonl("out"), name="out")
"""


@pytest.mark.slow
def test_a_replay_that_is_killed_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    (tmp_path / "slow_flow.py").write_text(SLOW)
    letters = tmp_path / "dead_letters" / "slow" / "slowly-0.jsonl"
    letters.parent.mkdir(parents=True)
    told: dict[str, Any] = {
        "task": "slowly",
        "replica": 0,
        "error": "",
        "traceback": "",
        "input": "numbers->slowly",
    }
    made = [Letter(item=str(k), id=(1, k, 0), pickle=pickled(k), **told) for k in range(100)]
    letters.write_bytes(b"".join(msgspec.json.encode(letter) + b"\n" for letter in made))
    command = [sys.executable, "-c", "from penstock.cli.main import app; app()"]
    command += ["replay-dead-letters", "slow_flow:flow"]
    out = tmp_path / "out" / "part-00000.jsonl"
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as killed:
        deadline = time.monotonic() + 90
        while not out.exists() or out.read_bytes().count(b"\n") < 30:
            assert time.monotonic() < deadline, "nothing is replayed"
            time.sleep(0.05)
        os.kill(killed.pid, signal.SIGKILL)
    time.sleep(3)  # until its Spark has noticed
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert "slowly: 100 letters replayed, 0 failed again" in done.stderr
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["item"] for line in found] == list(range(100))
