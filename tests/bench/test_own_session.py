"""Commands in sessions of their own, and what others did meanwhile."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.bench import own_session
from penstock.bench.neighbours import Look, neighbours_cpu_s, stolen_s
from penstock.bench.own_session import Finished, run_in_own_session

BURN = "import time\nwhile time.process_time() < 0.5: pass"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


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


def test_neighbours_count_and_the_session_itself_does_not() -> None:
    before = Look({1: 100, 2: 50}, {1: 1, 2: 2}, stolen=7)
    after = Look({1: 100 + TICKS_PER_S, 2: 900, 3: TICKS_PER_S}, {1: 1, 2: 2, 3: 3}, stolen=7 + TICKS_PER_S)
    assert neighbours_cpu_s(before, after, session=2) == 2.0
    assert stolen_s(before, after) == 1.0


def test_a_busy_neighbour_is_seen(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", BURN], start_new_session=True):
        finished = run("import time; time.sleep(3)", tmp_path)
    assert finished is not None
    assert finished.neighbours_cores > 0.05
