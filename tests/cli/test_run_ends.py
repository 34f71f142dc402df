"""However `penstock run` ends, its exit code says how, and no process, socket or file of it stays."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.operate.place import clear
from penstock.spark.checkpoint import TemporaryCheckpoint

pytestmark = pytest.mark.spark

FLOW = """
import time
import penstock

def work(item):
    time.sleep(0.001)
    if item == LAST:
        raise ValueError("not this one")
    return item

flow = penstock.Flow("ending")
numbers = flow.source(penstock.paced(lambda partition, index, seed: index, 2000), name="numbers")
numbers.map(work, parallelism=2).sink(penstock.jsonl("out"), name="out")
"""
START_S, END_S = 90, 60


class Started:
    """`penstock run` in a directory of its own, which is also where it and Spark put what is temporary."""

    def __init__(self, place: Path, last: int | None, *arguments: str) -> None:
        (place / "ending.py").write_text(FLOW.replace("LAST", repr(last)))
        self.tmp = place / "tmp"
        self.tmp.mkdir()
        self.out = place / "out"
        self._mark = f"PENSTOCK_TEST={place}"
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from penstock.cli.main import app; app()",
                "run",
                "ending:flow",
                *arguments,
            ],
            cwd=place,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PENSTOCK_TEST": str(place),
                "TMPDIR": str(self.tmp),
                "XDG_RUNTIME_DIR": "",
                "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.tmp}",
            },
        )

    def await_items(self) -> None:
        awaited(lambda: any(part.stat().st_size > 10_000 for part in self.out.glob("*")), START_S)

    def ended(self) -> tuple[int, str]:
        """The exit code, and what it said."""
        said = self.process.communicate(timeout=START_S + END_S)[1]
        return self.process.returncode, said

    def processes(self) -> list[str]:
        """Those that live and carry the mark of this run, which children inherit."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self._mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(entry.name)
                except OSError:
                    continue
        return found

    def left(self) -> list[str]:
        """Processes, sockets, and temporary files of Penstock or Spark."""
        sockets = [line for line in Path("/proc/net/unix").read_text().splitlines() if str(self.tmp) in line]
        files = [path.name for path in self.tmp.iterdir() if path.name.startswith(("penstock-", "spark-"))]
        return [*self.processes(), *sockets, *files]


def awaited(seen: Callable[[], bool], seconds: float = 10) -> None:
    deadline_s = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: names of sockets may have 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="pt-", dir="/tmp") as made:
        yield Path(made)


@pytest.mark.parametrize("told", ["the driver", "all of them"])
def test_sigterm_under_load_is_exit_code_0(place: Path, told: str) -> None:
    run = Started(place, None)
    run.await_items()
    for process in [run.process.pid] if told == "the driver" else map(int, run.processes()):
        os.kill(process, signal.SIGTERM)
    code, said = run.ended()
    assert code == 0
    assert "drained in" in said
    assert "commit 0 is the last" in said
    awaited(lambda: not run.left())


def test_a_stop_from_another_terminal_drains_and_both_say_so(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Started(place, None)
    run.await_items()
    monkeypatch.setattr(tempfile, "tempdir", str(run.tmp))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    stopped = CliRunner().invoke(app, ["stop", "ending"])
    assert stopped.exit_code == 0, stopped.output
    assert stopped.stdout.startswith("ending: drained in ")
    code, said = run.ended()
    assert code == 0
    assert stopped.stdout.removeprefix("ending: ").strip() in said
    awaited(lambda: not run.left())


def test_penstock_is_heard_and_spark_is_not(place: Path) -> None:
    run = Started(place, None, "--log-level", "info", "--for", "1 s")
    code, said = run.ended()
    assert code == 0
    assert "INFO penstock: flow ending: run " in said
    assert "INFO penstock: flow ending: is stopped, drained in " in said
    for noise in ("log4j", "log level", "NativeCodeLoader", "WARN "):
        assert noise not in said, noise


def test_a_task_that_raises_is_exit_code_1(place: Path) -> None:
    run = Started(place, 500)
    code, said = run.ended()
    assert code == 1
    assert 'task "work"' in said.replace("\n", " ")
    assert "not this one" in said
    awaited(lambda: not run.left())


def test_a_killed_driver_takes_everything_with_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Started(place, None)
    run.await_items()
    run.process.send_signal(signal.SIGKILL)
    assert run.ended()[0] == -signal.SIGKILL
    awaited(lambda: not run.processes(), 20)
    (commands,) = [path for path in run.tmp.iterdir() if path.name == f"penstock-{os.getuid()}"]
    beside = [name for name in run.left() if name != commands.name]
    assert [name for name in beside if not name.startswith("penstock-checkpoint-")] == []
    monkeypatch.setattr(tempfile, "tempdir", str(run.tmp))
    TemporaryCheckpoint().remove()  # the next start removes what the killed one could not
    assert clear(commands) == []
    assert not run.left()


def test_what_cannot_be_started_is_exit_code_2(place: Path) -> None:
    run = Started(place, None, "--commit", "2 s", "--policy", "static")
    code, said = run.ended()
    assert code == 2
    assert "nothing would ever be decided" in said.replace("\n", " ")
    assert not run.left()
