"""What a flow may leave behind: processes, threads, descriptors, directories, listening sockets.

A look before the flow and one after it; what is there only after it is left behind. Spark's own processes
stay and are compared by their number, because lost executors are replaced.
"""

import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock import processes
from penstock.faults.victims import command, executors, is_java, jvm
from penstock.operate.place import places
from penstock.spark.checkpoint import owner_of

PATIENCE_S = 10.0
_CONNECTED, _LISTENING = "01", "0A"
_AGENT = "penstock-agent"
_OF_EXECUTOR = 2
"""It listens for Spark's blocks and, from its first flow on, for the other executors."""


@dataclass(frozen=True, slots=True)
class Look:
    """At one moment, below this process: everything by a name that tells what it is, and how often."""

    found: Counter[str]


def look() -> Look:
    """Of this process, the Java virtual machine that it drives, and all that both have started."""
    found: Counter[str] = Counter()
    below = processes.tree(os.getpid())[1:]
    for pid in below:
        if not is_java(pid) and (words := command(pid)):
            found[f"process {pid}: {' '.join(words)[:120]}"] += 1
    carrying = executors()
    found["executor"] += len(carrying)
    found.update(f"thread {thread.name}" for thread in threading.enumerate() if _is_ours(thread.name))
    found.update(f"Java thread {name}" for name in java_threads() if _is_ours(name) and name != _AGENT)
    found.update(f"directory {place}" for place in private_directories())
    found.update(f"file {path}" for path in command_sockets())
    for pid in [os.getpid(), *below]:
        stays = _OF_EXECUTOR if pid in carrying else 0
        found.update(f"{_kind(pid)} listens" for _ in listening(pid)[stays:])
        found.update(f"{_kind(pid)} holds {target}" for target in unix_sockets(pid))
    return Look(found)


def left_behind(
    before: Look, look_again: Callable[[], Look] = look, patience_s: float = PATIENCE_S
) -> list[str]:
    """What was not there before, when all had some time to end."""
    deadline_s = time.monotonic() + patience_s
    while left := look_again().found - before.found:
        if time.monotonic() > deadline_s:
            break
        time.sleep(0.1)
    return sorted(left.elements())


def java_threads() -> list[str]:
    """Names of the threads of the driver's Java virtual machine; none without one."""
    machine = jvm()
    if machine is None:
        return []
    return [thread.getName() for thread in machine.java.lang.Thread.getAllStackTraces().keySet()]


def private_directories() -> list[str]:
    """Of zygotes and temporary checkpoints, where this process and its Java put them; none without Java."""
    if (machine := jvm()) is None:
        return []
    roots = {tempfile.gettempdir(), str(machine.java.lang.System.getProperty("java.io.tmpdir"))}
    return [place for root in roots for place in directories_in(root)]


def directories_in(root: str) -> list[str]:
    """One whose socket another process has bound is that one's, as is the checkpoint of one that lives."""
    ours = {path for pid in processes.tree(os.getpid()) for path in unix_sockets(pid)}
    others = {str(Path(path).parent) for path in _bound().values() if path not in ours}
    return [
        str(entry)
        for entry in Path(root).glob("penstock-*")
        if not entry.name.startswith(("penstock-trial-", "penstock-collector-"))
        and str(entry) not in others
        and not _is_anothers(entry)
    ]


def _is_anothers(checkpoint: Path) -> bool:
    owner = owner_of(checkpoint)
    return bool(owner) and owner != processes.identity(os.getpid()) and processes.is_alive(owner)


def command_sockets() -> list[str]:
    """By which flows of this process take commands."""
    return [str(path) for place in places() for path in place.glob(f"{os.getpid()}-*")]


def listening(pid: int) -> list[str]:
    """Local addresses (hexadecimal) of the listening TCP sockets of a process; none if it is gone."""
    return [local for local, _, _ in _tcp_sockets(pid, _LISTENING)]


def connected(pid: int) -> list[tuple[str, str, str]]:
    """Its TCP connections: both addresses (hexadecimal), and the number of the socket."""
    return _tcp_sockets(pid, _CONNECTED)


def _tcp_sockets(pid: int, state: str) -> list[tuple[str, str, str]]:
    inodes = set(_targets(pid))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and f"socket:[{fields[9]}]" in inodes:
                found.append((fields[1], fields[2], fields[9]))
    return found


def unix_sockets(pid: int) -> list[str]:
    """Of the Unix sockets that a process holds, those of Penstock, by the path that they were bound to."""
    held = set(_targets(pid))
    return [path for socket, path in _bound().items() if socket in held]


def _bound() -> dict[str, str]:
    """Unix sockets of Penstock in this network namespace, whoever holds them, and their paths."""
    ours = ("/penstock-", *(f"{place}/" for place in places()))
    rows = [line.split() for line in Path("/proc/self/net/unix").read_text().splitlines()[1:]]
    return {
        f"socket:[{row[6]}]": row[7] for row in rows if len(row) == 8 and any(part in row[7] for part in ours)
    }


def descriptors(pid: int) -> int:
    """How many a process has open; 0 if it is gone."""
    return len(_targets(pid))


def marked(mark: str) -> list[int]:
    """Processes that have this text in their environment, wherever they are now."""
    found = []
    for pid in processes.all_pids():
        try:
            environment = (processes.PROC / str(pid) / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in environment and pid != os.getpid():
            found.append(pid)
    return found


def _is_ours(name: str) -> bool:
    return name.startswith("penstock-")


def _kind(pid: int) -> str:
    return "this process" if pid == os.getpid() else "Java" if is_java(pid) else "a process"


def _targets(pid: int) -> list[str]:
    found = []
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            found.append(str(descriptor.readlink()))
        except OSError:
            continue
    return found
