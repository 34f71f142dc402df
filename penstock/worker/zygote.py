"""The warm parent of the workers: imports everything once, then forks on request.

    stdin   u32 length (big endian) and the pickled plan, then lines: "fork TOKEN", "kill TOKEN"
    stdout  lines: "ready" | "error TEXT", "forked TOKEN PID", "over TOKEN JSON", "exited TOKEN STATUS"

The parent connects each child to the bridge before it forks it, and keeps a hold on both channels: when the
child dies it ends them, so that the bridge sees the end even if a process that the child had forked still
holds them. Every child leads a process group of its own, which ends with it.

A child that exceeds a limit of its task (gauge.py) is killed; "over" tells which limit, and the item.

The end of stdin means that the executor is gone: children are killed, and the socket's private directory
is removed.
"""

import contextlib
import gc
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

import cloudpickle
import msgspec

from penstock.epochs.boundary import PREPARED
from penstock.epochs.killers import remove_pages
from penstock.orphans import end_with
from penstock.wire.orders import Plan
from penstock.worker import worker
from penstock.worker.bridged_files import in_executor, store_beside
from penstock.worker.gauge import Gauge, has_limits
from penstock.worker.sigterm import let_forked_end, outlive_sigterm

_DATA_CHANNEL, _CONTROL_CHANNEL = 0, 1
_LOOK_EVERY_S = 0.05


class Zygote:
    """Forks workers and reaps them."""

    def __init__(self, plan: Plan, address: str, events: IO[str]) -> None:
        self._plan = plan
        self._address = address
        self._events = events
        self._tokens: dict[int, str] = {}
        self._channels: dict[int, list[socket.socket]] = {}
        self._wake: tuple[int, ...] = ()
        self._gauges: dict[int, Gauge] = {}
        self._look_every_s = _LOOK_EVERY_S if has_limits(plan.graph) else None

    def serve(self) -> None:
        """Obey until stdin ends."""
        wake_in, wake_out = self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        pending = b""
        while True:
            ready = select.select([0, wake_in], [], [], self._look_every_s)[0]
            if wake_in in ready:
                os.read(wake_in, 4096)
                self._reap()
            if 0 in ready:
                received = os.read(0, 65536)
                if not received:
                    return
                *lines, pending = (pending + received).split(b"\n")
                for line in lines:
                    self._obey(line.decode())
            self._look()

    def kill_all(self) -> None:
        """End every child."""
        for pid in self._tokens:
            _kill_group(pid)
        for pid in self._tokens:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def _obey(self, line: str) -> None:
        verb, token = line.split(" ")
        if verb == "fork":
            self._fork(token)
        else:
            for pid, owner in self._tokens.items():
                if owner == token:
                    _kill_group(pid)

    def _fork(self, token: str) -> None:
        channels = [
            _connected(self._address, number, int(token)) for number in (_DATA_CHANNEL, _CONTROL_CHANNEL)
        ]
        gauge = None if self._look_every_s is None else Gauge(self._plan.graph)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _be_worker(self._plan, channels, gauge, parent, self._let_go)
        with contextlib.suppress(OSError):  # the child does the same: whoever comes first
            os.setpgid(pid, pid)
        self._tokens[pid] = token
        self._channels[pid] = channels
        if gauge is not None:
            self._gauges[pid] = gauge
        self._say(f"forked {token} {pid}")

    def _look(self) -> None:
        """End the children that are over a limit."""
        for pid, gauge in list(self._gauges.items()):
            over = gauge.over(pid, time.monotonic_ns())
            if over is not None:
                print(f"penstock: task {over.task}, process {pid}: {over.problem}; it is ended", flush=True)
                self._say(f"over {self._tokens[pid]} {msgspec.json.encode(over._asdict()).decode()}")
                del self._gauges[pid]
                _kill_group(pid)

    def _let_go(self) -> None:
        """In a child: close what is the parent's alone, so that its death is seen while the child lives."""
        signal.set_wakeup_fd(-1)
        for channel in [channel for others in self._channels.values() for channel in others]:
            channel.close()
        self._events.close()
        for descriptor in self._wake:
            os.close(descriptor)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            token = self._tokens.pop(pid, None)
            if token is None:
                continue  # no worker: something that a module started when it was imported
            self._gauges.pop(pid, None)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # what it had forked
            self._say(f"exited {token} {os.waitstatus_to_exitcode(status)}")
            for channel in self._channels.pop(pid):
                with contextlib.suppress(OSError):
                    channel.shutdown(socket.SHUT_RDWR)
                channel.close()

    def _say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._events.write(line + "\n")
            self._events.flush()


def _connected(address: str, number: int, token: int) -> socket.socket:
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect(address)
    channel.sendall(struct.pack("<Bq", number, token))
    return channel


def _kill_group(pid: int) -> None:
    """End a child and what it forked; one that has just been forked may not lead its group yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _be_worker(
    plan: Plan, channels: list[socket.socket], gauge: Gauge | None, parent: int, let_go: Callable[[], None]
) -> NoReturn:
    status = 1
    try:
        outlive_sigterm()
        os.setpgid(0, 0)
        if gauge is not None:
            end_with(parent)
        let_go()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        worker.main(plan, *channels, gauge=gauge)
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:  # noqa: BLE001 - a child must never return into its parent's loop
        traceback.print_exc()
    finally:
        os._exit(status)


def _read_plan() -> Plan:
    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            received = os.read(0, count - len(data))
            if not received:
                raise EOFError
            data += received
        return data

    (length,) = struct.unpack(">I", exactly(4))
    plan = cloudpickle.loads(exactly(length))
    assert isinstance(plan, Plan)
    return plan


def main(address: str) -> None:
    """Load the plan, then serve."""
    # What users print must not end up among the events: it goes to the executor's error output.
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outlive_sigterm()
    let_forked_end()
    try:
        _serve(address, events)
    finally:
        with contextlib.suppress(OSError):
            Path(address).unlink()
            store_beside(address).unlink(missing_ok=True)
            remove_pages(Path(address).parent)
            shutil.rmtree(Path(address).parent / PREPARED, ignore_errors=True)
            Path(address).parent.rmdir()


def _serve(address: str, events: IO[str]) -> None:
    try:
        plan = _read_plan()
    except EOFError:
        return
    except BaseException:  # noqa: BLE001 - users' modules may raise anything when imported
        text = "the flow cannot be loaded in a worker:\n" + traceback.format_exc()
        events.write("error " + text.replace("\n", "\\n") + "\n")
        events.flush()
        return
    plan = in_executor(plan, address)
    gc.collect()
    gc.freeze()
    zygote = Zygote(plan, address, events)
    events.write("ready\n")
    events.flush()
    try:
        zygote.serve()
    finally:
        zygote.kill_all()


if __name__ == "__main__":
    main(sys.argv[1])
