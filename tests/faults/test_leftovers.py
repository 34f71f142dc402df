"""What is left behind is seen."""

import os
import socket
import subprocess
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

from penstock import processes
from penstock.faults.leftovers import Look, directories_in, left_behind, listening, look, marked
from penstock.faults.victims import command, wait_until
from penstock.spark.checkpoint import TemporaryCheckpoint
from tests.operate.fake_job import greeting, opened


def test_only_what_is_new_is_left_behind() -> None:
    before = Look(Counter({"executor": 2, "thread penstock-old": 1}))
    after = Look(Counter({"executor": 2, "thread penstock-old": 1, "thread penstock-new": 2}))
    assert left_behind(before, lambda: after, 0.0) == ["thread penstock-new"] * 2
    assert left_behind(after, lambda: before, 0.0) == []


def test_what_ends_in_time_is_not() -> None:
    looks = iter([Look(Counter({"executor": 3})), Look(Counter({"executor": 2}))])
    assert left_behind(Look(Counter({"executor": 2})), lambda: next(looks), 5.0) == []


def test_processes_threads_and_sockets_are_seen() -> None:
    before = look()
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="penstock-forgotten")
    with socket.create_server(("127.0.0.1", 0)), subprocess.Popen(["sleep", "60"]) as process:
        thread.start()
        wait_until(lambda: command(process.pid) == ["sleep", "60"], "it has begun", 10.0)
        left = left_behind(before, patience_s=0.0)
        process.kill()
    over.set()
    thread.join()
    assert f"process {process.pid}: sleep 60" in left
    assert "thread penstock-forgotten" in left
    assert "this process listens" in left
    assert left_behind(before, patience_s=5.0) == []


def test_processes_are_found_by_their_environment_and_sockets_by_their_process() -> None:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "PENSTOCK_MARK": "only-here"}) as process:
        assert marked("PENSTOCK_MARK=only-here") == [process.pid]
        process.kill()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert any(place.endswith(f":{port:04X}") for place in listening(os.getpid()))


def test_the_socket_for_commands_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = look()
    hello = greeting(pid=os.getpid())
    with opened(tmp_path / "penstock", hello=hello) as server:
        left = left_behind(before, patience_s=0.0)
        assert left[0] == f"file {server.path}"
        assert left[1].startswith(f"this process holds {tmp_path}/penstock/{os.getpid()}-")
        assert left[2:] == ["thread penstock-commands"]
    assert left_behind(before, patience_s=5.0) == []


def test_checkpoints_of_other_processes_that_live_are_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = TemporaryCheckpoint()
    assert directories_in(str(tmp_path)) == [ours.address]
    with subprocess.Popen(["sleep", "60"]) as other:
        owner = processes.identity(other.pid)
        assert owner is not None
        (Path(ours.address) / ".penstock-owner").write_text(owner)
        assert directories_in(str(tmp_path)) == []
        other.kill()
    assert directories_in(str(tmp_path)) == [ours.address]
