"""A driver and a caller over a real socket."""

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from penstock.operate import client
from penstock.operate.client import Call, Found, NoAnswerError, NoSuchFlowError, Running, chosen, find
from penstock.operate.opened import accept_commands
from penstock.operate.place import prepare
from penstock.operate.protocol import (
    REQUEST_BYTES,
    AskStatus,
    Changed,
    FlowNow,
    Refused,
    Request,
    Set,
    Stop,
    Stopped,
)
from penstock.operate.server import Server
from tests.operate.fake_job import FakeJob, await_no_threads, greeting, opened


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "p"


def test_a_flow_is_found_asked_changed_and_stopped(place: Path) -> None:
    job = FakeJob()
    with opened(place, job) as server:
        assert (server.path.name, server.path.stat().st_mode & 0o777) == ("4711-9f12ab34.sock", 0o600)
        found = find([place])
        assert (found.flows, found.problems) == ([Running(greeting(), server.path)], [])
        with Call(server.path) as call:
            assert isinstance(call.ask(AskStatus()), FlowNow)
            assert isinstance(call.ask(Set(replicas={"work": 3})), Changed)
            assert job.active["work"] == 3
            assert isinstance(call.ask(Stop()), Stopped)
    await_no_threads()


def test_nothing_stays_when_it_is_closed(place: Path) -> None:
    with opened(place) as server:
        call = Call(server.path)
        server.close()
        assert not place.exists()
        with pytest.raises(NoAnswerError, match=r'flow "primes" \(pid 4711\)'):
            call.ask(AskStatus())
        call.close()
        await_no_threads()
        assert find([place]) == Found()


def test_a_flow_that_ends_by_its_stop_still_tells_what_was_drained(place: Path) -> None:
    """The handle closes the socket in the thread that stops the flow, before the answer."""
    job = FakeJob()
    kinds: list[bool] = []
    with opened(place, job) as server:

        def end() -> None:
            kinds.append(threading.current_thread().daemon)
            server.close()

        job.when_stopped = end
        with Call(server.path) as call:
            answer = call.ask(Stop())
    assert isinstance(answer, Stopped)
    assert answer.items == {"work": 10}
    assert kinds == [False], "a driver that ends waits for this thread"
    await_no_threads()


def test_somebody_else_is_not_served(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as server, socket.socket(socket.AF_UNIX) as caller:
        me = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
        caller.connect(str(server.path))
        caller.settimeout(5)
        assert caller.recv(100) == b""


def test_a_driver_of_somebody_else_is_not_trusted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as server:
        monkeypatch.setattr(client, "stranger", lambda connection: "user mallory")
        found = find([place])
        assert found.flows == []
        assert found.problems == [f"{server.path} is answered by user mallory and is not used"]


def test_a_directory_that_is_not_private_is_told_and_not_searched(place: Path) -> None:
    with opened(place):
        place.chmod(0o755)
        found = find([place])
        assert found.flows == []
        assert "can be entered by others" in found.problems[0]
        place.chmod(0o700)


def test_a_driver_that_was_killed_is_cleared_by_whoever_looks(place: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.operate.fake_job import opened\n"
        "with opened(Path(sys.argv[1])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-c", script, str(place)], env=environment, check=False, timeout=60)
    assert [path.name for path in place.iterdir()] == ["4711-9f12ab34.sock"]
    assert find([place]) == Found()
    assert not place.exists()


def test_a_new_driver_clears_what_dead_ones_left(place: Path) -> None:
    with opened(place) as server:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(place / "1-dead.sock"))
            dead.listen()
        with opened(place, hello=greeting(run="00000000")) as other:
            assert sorted(place.iterdir()) == sorted([server.path, other.path])


def test_a_directory_that_others_just_leave_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[Path] = []

    def prepare_in_vain(made: Path) -> None:
        prepare(made)
        if not left:
            left.append(made)
            made.rmdir()

    monkeypatch.setattr("penstock.operate.server.prepare", prepare_in_vain)
    with opened(place) as server:
        assert [flow.path for flow in find([place]).flows] == [server.path]
    assert left == [place]


def test_a_driver_that_hangs_is_named_by_its_pid(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_GREETING_S", 0.2)
    place.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as stuck:
        stuck.bind(str(place / "99-abc.sock"))
        stuck.listen()
        found = find([place])
    assert found.problems == ["the driver with pid 99: it does not answer; it may be stopped or stuck"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b'{"version": 9, "penstock": "7.0", "flow": "f"}', "version 9; this Penstock knows version 1"),
        (b'{"version": 1}', "no flow of Penstock answers"),
        (b"hello", "no flow of Penstock answers"),
    ],
)
def test_a_driver_of_another_version_is_told_apart(place: Path, said: bytes, words: str) -> None:
    place.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "99-abc.sock"))
        listener.listen()

        def greet() -> None:
            for _ in range(2):  # whoever looks tries first whether somebody listens
                connection, _ = listener.accept()
                with connection, suppress(BrokenPipeError):
                    connection.sendall(said + b"\n")

        thread = threading.Thread(target=greet)
        thread.start()
        found = find([place])
        thread.join(5)
    assert words in found.problems[0]


def talk(path: Path, text: bytes) -> list[bytes]:
    """What comes back on that, until the driver has had enough, or half a second."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))
        caller.settimeout(0.5)
        with suppress(TimeoutError, ConnectionResetError, BrokenPipeError):
            caller.sendall(text)
        received = b""
        with suppress(TimeoutError, ConnectionResetError):
            while piece := caller.recv(65536):
                received += piece
    return received.splitlines()


@pytest.mark.parametrize(
    "text",
    [
        b"nonsense\n",
        b'{"do": "explode"}\n',
        b'{"do": "set", "replicas": {"work": "many"}}\n',
        b'{"do": "set", "replica": {"work": 2}}\n',
        b"\xff\xfe\n",
    ],
)
def test_nonsense_is_refused_and_the_flow_unharmed(place: Path, text: bytes) -> None:
    job = FakeJob()
    with opened(place, job) as server:
        said = talk(server.path, text)
        assert msgspec.json.decode(said[1], type=Refused).why.startswith("this is no request: ")
        assert job.active["work"] == 2
        with Call(server.path) as call:
            assert isinstance(call.ask(AskStatus()), FlowNow)


def test_a_line_without_end_is_not_kept(place: Path) -> None:
    with opened(place) as server:
        assert len(talk(server.path, b"x" * (REQUEST_BYTES + 2))) <= 1, "no answer but the greeting"
        with Call(server.path) as call:
            assert isinstance(call.ask(AskStatus()), FlowNow)


def test_an_answer_that_cannot_be_given_is_a_refusal(place: Path) -> None:
    def broken(request: Request) -> FlowNow:
        raise KeyError("oops")

    server = Server(greeting(), broken, place)
    try:
        with Call(server.path) as call:
            assert call.ask(AskStatus()) == Refused(
                why="the driver could not answer: KeyError('oops')", failed=True
            )
    finally:
        server.close()


def test_too_many_callers_are_turned_away_and_others_served_later(place: Path) -> None:
    with opened(place) as server:
        calls = [Call(server.path) for _ in range(16)]
        with pytest.raises(NoAnswerError):
            Call(server.path)
        for call in calls:
            call.close()
        deadline_s = time.monotonic() + 5
        while True:
            try:
                Call(server.path).close()
                break
            except NoAnswerError:
                assert time.monotonic() < deadline_s, "nobody is served any more"
                time.sleep(0.01)


def test_a_driver_short_of_descriptors_answers_later(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, failed = socket.socket.accept, list[int]()

    def moody(listener: socket.socket) -> tuple[socket.socket, object]:
        if len(failed) < 2:
            failed.append(errno.EMFILE)
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", moody)
    with opened(place) as server, Call(server.path) as call:
        assert isinstance(call.ask(AskStatus()), FlowNow)
    assert len(failed) == 2
    await_no_threads()


def flows(*whos: tuple[str, int, str]) -> Found:
    return Found([Running(greeting(flow, run, pid), Path("p")) for flow, pid, run in whos])


def test_a_name_a_pid_and_a_run_tell_flows_apart() -> None:
    found = flows(("primes", 1, "aaaa1111"), ("primes", 2, "bbbb2222"), ("words", 2, "cccc3333"))
    assert chosen("words", found).greeting.run == "cccc3333"
    assert chosen("1", found).greeting.run == "aaaa1111"
    assert chosen("bbb", found).greeting.run == "bbbb2222"
    for reference in ("primes", "2"):
        with pytest.raises(NoSuchFlowError, match=f'"{reference}" stands for 2 flows: .*give the run'):
            chosen(reference, found)
    with pytest.raises(NoSuchFlowError, match=r"several flows run: primes \(run aaaa1111, pid 1\), "):
        chosen(None, found)
    with pytest.raises(NoSuchFlowError, match=r'no flow "nobody" runs under this user .*there are primes'):
        chosen("nobody", found)


def test_the_only_flow_needs_no_name_and_without_any_problems_are_told() -> None:
    assert chosen(None, flows(("primes", 1, "aaaa1111"))).greeting.pid == 1
    with pytest.raises(NoSuchFlowError, match="no flow runs under this user on this machine; it hangs"):
        chosen(None, Found([], ["it hangs"]))


def test_a_name_wins_over_a_run() -> None:
    found = flows(("beef", 1, "aaaa1111"), ("primes", 2, "beef2222"))
    assert chosen("beef", found).greeting.pid == 1


def test_a_flow_that_cannot_be_opened_runs_on_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "penstock").mkdir()
    (tmp_path / "penstock").chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    accept_commands(FakeJob(), "9f12ab34cd")()
    assert len(caplog.messages) == 1
    assert "flow primes: `penstock ps`, `status`, `set` and `stop` do not see it: " in caplog.text
    assert "chmod 700" in caplog.text


def test_a_flow_is_opened_where_callers_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    close = accept_commands(FakeJob(), "9f12ab34cd")
    flow = chosen("primes", find())
    assert (flow.greeting.pid, flow.path.parent) == (os.getpid(), tmp_path / "penstock")
    close()
    close()
    assert os.getpid() not in [one.greeting.pid for one in find().flows], "flows of others may run here"
