"""Processes in sessions of their own that answer questions."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.bench import own_session
from penstock.bench.own_session import OwnSession, SessionEndedError

BURN = "import time\nwhile time.process_time() < 0.5: pass"
ECHO = """
import subprocess, sys, time
for line in sys.stdin:
    print("a note")
    time.sleep(float(line))
    print("answer: " + line.strip(), flush=True)
"""


def session(code: str, directory: Path) -> OwnSession:
    return OwnSession([sys.executable, "-c", code], environment=os.environ, directory=directory)


def test_questions_are_answered_one_after_the_other(tmp_path: Path) -> None:
    with session(ECHO, tmp_path) as asked:
        assert [asked.ask(text, 30.0).text.strip() for text in ("0", "0.1")] == ["0", "0.1"]


def test_notes_are_told_before_the_answer(tmp_path: Path) -> None:
    code = "input(); print('note: half way\\nsomething else\\nanswer: 1', flush=True); input()"
    notes: list[str] = []
    with session(code, tmp_path) as asked:
        assert asked.ask("go", 30.0, noted=notes.append).text.strip() == "1"
    assert notes == ["half way"]


def test_any_thread_may_ask(tmp_path: Path) -> None:
    with session(ECHO, tmp_path) as asked, ThreadPoolExecutor(1) as threads:
        assert threads.submit(asked.ask, "0", 30.0).result().text.strip() == "0"


def test_an_answer_that_takes_too_long_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_session, "ENDS_WITHIN_S", 1.0)
    began_s = time.monotonic()
    with session(ECHO, tmp_path) as asked, pytest.raises(SessionEndedError, match="did not answer in time"):
        asked.ask("60", 0.5)
    assert time.monotonic() - began_s < 20


def test_the_last_words_of_one_that_ends_are_told(tmp_path: Path) -> None:
    code = "import sys; sys.stdin.readline(); sys.exit('no more')"
    with session(code, tmp_path) as asked:
        with pytest.raises(SessionEndedError) as ended:
            asked.ask("anything", 30.0)
        assert str(ended.value) == "exit code 1\nno more\n"


def test_children_that_stay_behind_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_session, "ENDS_WITHIN_S", 0.5)
    answer = "print('answer: ', subprocess.Popen(['sleep', '60']).pid, flush=True)"
    code = f"import subprocess; {answer}; input(); input()"
    with session(code, tmp_path) as asked:
        pid = asked.ask("who", 30.0).text.strip()
    left = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False)
    assert left.stdout.strip()[:1] in ("", "Z")


def test_a_busy_neighbour_is_seen(tmp_path: Path) -> None:
    with (
        session(ECHO, tmp_path) as asked,
        subprocess.Popen([sys.executable, "-c", BURN], start_new_session=True),
    ):
        assert asked.ask("2", 30.0).neighbours_cores > 0.05


TERMINATED = """
import os, sys
from pathlib import Path
from penstock.bench.own_session import OwnSession
command = [sys.executable, "-c", "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"]
with OwnSession(command, environment=os.environ, directory=Path.cwd()) as session:
    session.ask("anything", 60)
"""


def test_a_session_ends_with_the_process_that_is_terminated(tmp_path: Path) -> None:
    root = str(Path(own_session.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen([sys.executable, "-c", TERMINATED], cwd=tmp_path, env=environment) as parent:
        written = tmp_path / "pid"
        while not (written.exists() and written.read_text()):
            time.sleep(0.05)
        parent.terminate()
        assert parent.wait(30) == 143
    assert not Path("/proc", written.read_text()).exists()
