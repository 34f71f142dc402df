"""The parent of the workers: it forks, and what it forked ends, whatever else was forked by that."""

import contextlib
import os
import queue
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NoReturn

import cloudpickle
import msgspec
import pytest

from penstock.flow import Flow
from penstock.wire import frames as wire
from penstock.wire.orders import Plan
from tests.flow.random_flows import Partitioned, ignore
from tests.worker.forking import LEAVES, STAYS, Forking, goes_within, is_gone
from tests.worker.lone_worker import LoneWorker

PATIENCE_S = 20.0
SOON_S = 2.0


def speak(item: object) -> object:
    print("printed by a task")
    return item


def quit_with(status: int) -> NoReturn:
    os._exit(status)


HELD: list[bytes] = []


def hoard(size: int) -> int:
    HELD.append(b"x" * size)
    return size


def flow() -> Flow:
    made = Flow("forked")
    source = made.source(Partitioned(1), name="source")
    source.task(Forking, name="fork").sink(ignore, name="forked")
    source.map(speak, name="speak").sink(ignore, name="spoken")
    source.map(quit_with, name="quit").sink(ignore, name="never")
    return made


def limited() -> Flow:
    made = flow()
    made.map(time.sleep, "source", name="sleep", timeout="200 ms").sink(ignore, name="slept")
    made.map(hoard, "source", name="hoard", memory="30 MB").sink(ignore, name="hoarded")
    return made


class Executor:
    """The executor's side of a zygote: a socket, commands and events."""

    def __init__(self, plan: bytes) -> None:
        # Not in the directory of the test: the address of a socket must be short.
        self.directory = Path(tempfile.mkdtemp(prefix="penstock-"))
        self.address = self.directory / "workers.sock"
        self.events: queue.Queue[str | None] = queue.Queue()
        self.workers: list[LoneWorker] = []
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(self.address))
        self._server.listen()
        self._server.settimeout(PATIENCE_S)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.worker.zygote", str(self.address)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._commands = self.process.stdin
        self._listener = threading.Thread(target=self._listen, args=(self.process.stdout,), daemon=True)
        self._listener.start()
        self._commands.write(plan)
        self._commands.flush()

    def _listen(self, events: IO[bytes]) -> None:
        for line in events:
            self.events.put(line.decode().rstrip("\n"))
        self.events.put(None)

    def heard(self) -> str | None:
        """The next line, None at the end."""
        return self.events.get(timeout=PATIENCE_S)

    def say(self, command: str) -> None:
        self._commands.write(command.encode() + b"\n")
        self._commands.flush()

    def fork(self, token: int) -> LoneWorker:
        self.say(f"fork {token}")
        channels = {}
        for _ in range(2):
            channel, _ = self._server.accept()
            number, told = struct.unpack("<Bq", channel.recv(9, socket.MSG_WAITALL))
            assert told == token
            channels[number] = channel
        verb, told, pid = (self.heard() or "").split(" ")
        assert (verb, told) == ("forked", str(token))
        self.workers.append(LoneWorker(limited(), int(pid), channels[0], channels[1]))
        return self.workers[-1]

    def hang_up(self) -> None:
        """As when the executor dies."""
        with contextlib.suppress(BrokenPipeError):
            self._commands.close()

    def close(self) -> None:
        """Whatever happened before."""
        self.hang_up()
        for worker in self.workers:
            worker.hang_up()
            assert goes_within(worker.pid, PATIENCE_S)
        self.process.wait(PATIENCE_S)
        self._listener.join(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._server.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def sent(plan: bytes) -> bytes:
    return struct.pack(">I", len(plan)) + plan


Start = Callable[[bytes], Executor]


@pytest.fixture
def start() -> Iterator[Start]:
    """A way to start a zygote with what is written to it first."""
    executors: list[Executor] = []

    def make(plan: bytes) -> Executor:
        executors.append(Executor(plan))
        return executors[0]

    yield make
    for executor in executors:
        executor.close()


@pytest.fixture
def executor(start: Start) -> Executor:
    """One that is ready."""
    made = start(sent(cloudpickle.dumps(Plan(flow().graph(), "nowhere"))))
    assert made.heard() == "ready"
    return made


@pytest.fixture
def watching(start: Start) -> Executor:
    """One whose workers have limits."""
    made = start(sent(cloudpickle.dumps(Plan(limited().graph(), "nowhere"))))
    assert made.heard() == "ready"
    return made


def has_forked(worker: LoneWorker, how: str = STAYS) -> int:
    """Let the worker fork a process that holds its channels; the number of that process."""
    worker.start("fork")
    worker.give(1, [how])
    worker.until(wire.OUT)
    ((own, forked),) = worker.items()
    assert own == worker.pid
    return int(forked)


def answers(worker: LoneWorker) -> bool:
    worker.start("speak")
    worker.give(1, ["echo"], stream=1)
    worker.end()
    return worker.items() == ["echo"]


def test_workers_work_and_lead_their_groups(executor: Executor) -> None:
    """A token is any number of 64 bits."""
    first, second = executor.fork(-(2**63)), executor.fork(2**63 - 1)
    assert first.pid != second.pid
    assert [os.getpgid(worker.pid) for worker in (first, second)] == [first.pid, second.pid]
    assert answers(first)
    assert answers(second)
    assert executor.events.empty(), "what tasks print is no event"


def test_a_killed_worker_is_told_of_though_a_process_it_forked_holds_its_channels(executor: Executor) -> None:
    worker, other = executor.fork(1), executor.fork(2)
    forked = has_forked(worker)
    began_s = time.monotonic()
    os.kill(worker.pid, signal.SIGKILL)
    worker.until_silent()
    assert executor.heard() == "exited 1 -9"
    assert goes_within(forked, SOON_S)
    assert time.monotonic() - began_s < SOON_S
    assert answers(other)


def test_a_process_that_has_left_the_group_does_not_keep_the_channels_open(executor: Executor) -> None:
    worker = executor.fork(1)
    forked = has_forked(worker, LEAVES)
    os.kill(worker.pid, signal.SIGKILL)
    worker.until_silent()
    assert executor.heard() == "exited 1 -9"
    assert not is_gone(forked)
    os.kill(forked, signal.SIGKILL)


def test_a_worker_is_killed_on_request_with_what_it_forked(executor: Executor) -> None:
    worker, other = executor.fork(1), executor.fork(2)
    forked = has_forked(worker)
    executor.say("kill 1")
    worker.until_silent()
    assert executor.heard() == "exited 1 -9"
    assert goes_within(forked, SOON_S)
    executor.say("kill 1")
    executor.say("kill 77")
    assert answers(other), "killing the dead and the unknown harms nobody"


def test_sigterm_ends_what_a_task_forked_and_neither_worker_nor_zygote(executor: Executor) -> None:
    worker = executor.fork(1)
    forked = has_forked(worker)
    for process in (executor.process.pid, worker.pid, forked):
        os.kill(process, signal.SIGTERM)
    assert goes_within(forked, SOON_S)
    worker.give(2, [STAYS])
    worker.until(wire.OUT)
    assert len(worker.items()) == 2, "it goes on"
    assert answers(executor.fork(2))


def test_the_status_of_a_worker_that_ends_by_itself_is_told(executor: Executor) -> None:
    worker = executor.fork(1)
    worker.start("quit")
    worker.give(1, [3], stream=2)
    worker.until_silent()
    assert executor.heard() == "exited 1 3"


def over(executor: Executor, token: int) -> dict[str, object]:
    """What is said of a worker that exceeds a limit, before its end."""
    verb, told, json = (executor.heard() or "").split(" ", 2)
    assert (verb, told) == ("over", str(token))
    assert executor.heard() == f"exited {token} -9"
    return dict(msgspec.json.decode(json))


def test_a_worker_whose_item_takes_too_long_is_ended_and_the_item_is_named(watching: Executor) -> None:
    worker, other = watching.fork(1), watching.fork(2)
    worker.start("sleep")
    worker.give(3, [0, 0.05, 60], stream=3)
    problem = "it took longer than its timeout=200 ms"
    assert over(watching, 1) == {"task": "sleep", "problem": problem, "sequence": 3, "item": 2}
    assert answers(other)


def test_a_worker_that_uses_too_much_memory_is_ended(watching: Executor) -> None:
    worker = watching.fork(1)
    worker.start("hoard")
    for sequence in range(1, 6):
        worker.give(sequence, [12_000_000], stream=4)
    said = over(watching, 1)
    assert (said["task"], said["item"]) == ("hoard", -1)
    assert str(said["problem"]).endswith(" MB, more than its memory=30 MB")


def test_in_careful_mode_the_item_that_took_the_memory_is_the_last_one_named(watching: Executor) -> None:
    worker = watching.fork(1)
    worker.start("hoard")
    worker.give(1, [1, 60_000_000, 2, 3], stream=4, careful=True)
    assert str(over(watching, 1)["problem"]).endswith(" MB, more than its memory=30 MB")
    worker.until_silent()
    assert worker.at == [(1, 0), (1, 1)]


def test_workers_with_limits_do_not_outlive_who_watches_them(watching: Executor) -> None:
    worker = watching.fork(1)
    assert answers(worker)
    watching.process.kill()
    worker.until_silent()
    assert goes_within(worker.pid, SOON_S)


def test_a_worker_goes_with_its_channels_and_with_what_it_forked(executor: Executor) -> None:
    worker = executor.fork(1)
    forked = has_forked(worker)
    worker.hang_up()
    assert executor.heard() == "exited 1 -9"
    assert goes_within(forked, SOON_S)


def test_workers_do_not_hold_the_channels_of_others(executor: Executor) -> None:
    """Without their parent, which holds all, the channels of a worker end with it alone."""
    workers = [executor.fork(token) for token in (1, 2, 3)]
    executor.process.kill()
    executor.process.wait(PATIENCE_S)
    for worker in workers:
        assert answers(worker), "workers live on as long as their channels"
        os.kill(worker.pid, signal.SIGKILL)
        worker.until_silent()


def test_the_end_of_the_executor_ends_everything(executor: Executor) -> None:
    workers = [executor.fork(1), executor.fork(2)]
    family = [worker.pid for worker in workers] + [has_forked(worker) for worker in workers]
    assert not any(map(is_gone, family))
    executor.hang_up()
    assert executor.heard() is None
    assert executor.process.wait(PATIENCE_S) == 0
    assert all(goes_within(pid, SOON_S) for pid in family)
    assert not executor.directory.exists()


def test_a_flow_that_cannot_be_loaded_is_told_in_one_line(start: Start) -> None:
    executor = start(sent(b"no pickle"))
    problem = executor.heard() or ""
    assert problem.startswith("error the flow cannot be loaded in a worker:\\nTraceback ")
    assert "UnpicklingError" in problem
    assert executor.heard() is None
    assert executor.process.wait(PATIENCE_S) == 0


def test_an_executor_that_ends_before_the_plan_is_whole(start: Start) -> None:
    executor = start(sent(b"some of it")[:8])
    executor.hang_up()
    assert executor.heard() is None
    assert executor.process.wait(PATIENCE_S) == 0
    assert not executor.directory.exists()


class StartsSomething:
    """A plan whose loading starts a process that soon ends, as a module may do when it is imported."""

    def __reduce__(self) -> tuple[object, ...]:
        return _with_a_child, (cloudpickle.dumps(Plan(flow().graph(), "nowhere")),)


def _with_a_child(plan: bytes) -> object:
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
    return cloudpickle.loads(plan)


def test_a_child_that_is_no_worker_harms_nobody(start: Start) -> None:
    executor = start(sent(cloudpickle.dumps(StartsSomething())))
    assert executor.heard() == "ready"
    worker = executor.fork(1)
    time.sleep(0.5)
    assert answers(worker)
    assert executor.process.poll() is None


def test_the_death_of_the_parent_is_seen_while_its_workers_live(executor: Executor) -> None:
    executor.fork(1)
    executor.process.kill()
    assert executor.events.get(timeout=SOON_S) is None
