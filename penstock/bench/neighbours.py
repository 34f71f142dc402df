"""What the rest of the machine did while a command ran in a session of its own."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.processes import PROC, stat

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD: the kernel works for whoever asks, and a turn asks most
_PARENT, _SESSION, _FLAGS = 1, 3, 6
_STEAL = 8


@dataclass(frozen=True, slots=True)
class Look:
    """At one moment: ticks of CPU of every other process so far, its session, and ticks that were stolen."""

    ticks: Mapping[int, int]
    sessions: Mapping[int, int]
    stolen: int


def look() -> Look:
    """All processes but this one and the kernel's.

    A process counts with the children it has waited for, which would be missed otherwise. The ancestors of
    this process count alone: orphans of a turn are waited for by them.
    """
    ticks, sessions, ancestors = {}, {}, _ancestors()
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or (pid := int(entry.name)) == os.getpid():
            continue
        fields = stat(pid)
        if fields is not None and not int(fields[_FLAGS]) & _KERNEL_THREAD:
            sessions[pid] = int(fields[_SESSION])
            ticks[pid] = sum(map(int, fields[11 : 13 if pid in ancestors else 15]))
    return Look(ticks, sessions, _stolen())


def neighbours_cpu_s(before: Look, after: Look, session: int) -> float:
    """CPU between two looks of all processes that are not of that session."""
    used = [
        max(0, ticks - before.ticks.get(pid, 0))
        for pid, ticks in after.ticks.items()
        if after.sessions[pid] != session
    ]
    return sum(used) / _TICKS_PER_S


def stolen_s(before: Look, after: Look) -> float:
    """CPU between two looks that the machine below gave to others, of all cores together."""
    return (after.stolen - before.stolen) / _TICKS_PER_S


def _ancestors() -> set[int]:
    found: set[int] = set()
    pid = os.getppid()
    while pid > 0 and (fields := stat(pid)) is not None:
        found.add(pid)
        pid = int(fields[_PARENT])
    return found


def _stolen() -> int:
    return int((PROC / "stat").read_text().split(maxsplit=_STEAL + 1)[_STEAL])
