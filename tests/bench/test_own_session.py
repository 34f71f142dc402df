"""Commands in sessions of their own."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.bench import own_session
from penstock.bench.own_session import Finished, run_in_own_session

BURN = "import time\nwhile time.process_time() < 0.5: pass"


def run(code: str, directory: Path, timeout_s: float = 60.0) -> Finished | None:
    return run_in_own_session(
        [sys.executable, "-c", code], environment=os.environ, directory=directory, timeout_s=timeout_s
    )


def test_what_a_command_said_comes_back(tmp_path: Path) -> None:
    finished = run("import os, sys; print(os.getcwd()); print('why', file=sys.stderr); sys.exit(3)", tmp_path)
    assert finished is not None
    assert (finished.code, finished.out, finished.err) == (3, f"{tmp_path}\n", "why\n")


def test_a_command_that_takes_too_long_is_stopped_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_session, "ENDS_WITHIN_S", 1.0)
    child = "import subprocess, sys; subprocess.run(['sleep', '60'], check=False)"
    began_s = time.monotonic()
    assert run(child, tmp_path, timeout_s=1.0) is None
    assert time.monotonic() - began_s < 20


def test_children_that_stay_behind_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_session, "ENDS_WITHIN_S", 0.5)
    finished = run("import subprocess; print(subprocess.Popen(['sleep', '60']).pid)", tmp_path)
    assert finished is not None
    time.sleep(0.2)
    left = subprocess.run(["ps", "-o", "stat=", "-p", finished.out.strip()], capture_output=True, text=True)
    assert left.stdout.strip() in ("", "Z")


def test_a_busy_neighbour_is_seen(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", BURN], start_new_session=True):
        finished = run("import time; time.sleep(3)", tmp_path)
    assert finished is not None
    assert finished.neighbours_cores > 0.05


TERMINATED = """
import os, sys
from pathlib import Path
from penstock.bench.own_session import run_in_own_session
command = [sys.executable, "-c", "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"]
run_in_own_session(command, environment=os.environ, directory=Path.cwd(), timeout_s=60)
"""


def test_a_command_ends_with_the_process_that_is_terminated(tmp_path: Path) -> None:
    root = str(Path(own_session.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen([sys.executable, "-c", TERMINATED], cwd=tmp_path, env=environment) as parent:
        written = tmp_path / "pid"
        while not (written.exists() and written.read_text()):
            time.sleep(0.05)
        parent.terminate()
        assert parent.wait(30) == 143
    assert not Path("/proc", written.read_text()).exists()
