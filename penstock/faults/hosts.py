"""Hosts of a network of their own on this machine, whose cables can be pulled or be bad: network namespaces.

Needs root and `ip`. Nothing in them is reached from outside, and nothing of them is left afterwards.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_NETWORK = "10.77.{}"
_SPACES = Path("/run/netns")


@dataclass(frozen=True, slots=True)
class Host:
    """A namespace and its address; `cable` is the interface at its end, `socket` the one at the switch."""

    name: str
    address: str
    cable: str
    socket: str
    switch: str

    def command(self, argv: Sequence[str]) -> list[str]:
        """What runs `argv` on this host."""
        return ["ip", "netns", "exec", self.name, *argv]

    def runs(self, pid: int) -> bool:
        """Whether a process is on this host."""
        try:
            return Path(f"/proc/{pid}/ns/net").stat().st_ino == (_SPACES / self.name).stat().st_ino
        except (FileNotFoundError, PermissionError):
            return False

    def narrow(self, rate: str, queue: str) -> None:
        """Its cable carries so much: what comes faster waits, and what would wait for longer is dropped."""
        limits = ["tbf", "rate", rate, "burst", "4kb", "latency", queue]
        for space, interface in self._ends():
            _run("tc", "-n", space, "qdisc", "replace", "dev", interface, "root", *limits)

    def widen(self) -> None:
        """Its cable is as it was."""
        for space, interface in self._ends():
            _run("tc", "-n", space, "qdisc", "delete", "dev", interface, "root")

    def _ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.name, self.cable), (self.switch, self.socket)

    def cut(self) -> None:
        """Pull its cable: what is on its way is gone, and nobody is told."""
        _ip("-n", self.name, "link", "set", self.cable, "down")

    def mend(self) -> None:
        """Put it in again."""
        _ip("-n", self.name, "link", "set", self.cable, "up")


class Hosts:
    """So many hosts at one switch, in a namespace as well: nothing of this machine is in their network."""

    def __init__(self, count: int) -> None:
        number = os.getpid() % 250
        self._prefix = f"ps{os.getpid()}"
        self._switch = f"{self._prefix}s"
        self._network = _NETWORK.format(number)
        self.hosts = [
            Host(f"{self._prefix}h{i}", f"{self._network}.{i + 1}", f"c{i}", f"w{i}", self._switch)
            for i in range(count)
        ]

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _make(self) -> None:
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "switch", "up")
        for host in self.hosts:
            _ip("netns", "add", host.name)
            _ip("-n", host.name, "link", "set", "lo", "up")
            _ip("-n", host.name, "link", "add", host.cable, "type", "veth", "peer", "name", host.socket)
            _ip("-n", host.name, "link", "set", host.socket, "netns", self._switch)
            _ip("-n", self._switch, "link", "set", host.socket, "master", "switch", "up")
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", host.cable)
            _ip("-n", host.name, "link", "set", host.cable, "up")

    def close(self) -> None:
        """Their interfaces go with them."""
        for name in [self._switch, *(host.name for host in self.hosts)]:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def cannot_make_hosts() -> str | None:
    """Why there can be none here, None if there can."""
    if shutil.which("ip") is None:
        return "there is no `ip` command"
    try:
        with Hosts(1):
            return None
    except subprocess.CalledProcessError as problem:
        return f"network namespaces cannot be made here: {problem.stderr.strip()}"


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*argv: str) -> None:
    subprocess.run(argv, capture_output=True, text=True, check=True)
