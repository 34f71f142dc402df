"""What the rest of the machine did while a command ran in a session of its own."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.processes import PROC, stat

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD: the kernel works for whoever asks, and a turn asks most
_PARENT, _SESSION, _FLAGS = 1, 3, 6
_STEAL = 8


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A process: its parent, its session, its ticks of CPU with those of children it has waited for."""

    parent: int
    session: int
    ticks: int


@dataclass(frozen=True, slots=True)
class Look:
    """At one moment: every other process by its id, and ticks that were stolen so far."""

    processes: Mapping[int, Neighbour]
    stolen: int


def look() -> Look:
    """All processes but the kernel's, this one and its ancestors: those wait for the orphans of a turn."""
    left_out = _with_ancestors(os.getpid())
    processes = {}
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or (pid := int(entry.name)) in left_out:
            continue
        fields = stat(pid)
        if fields is not None and not int(fields[_FLAGS]) & _KERNEL_THREAD:
            ticks = sum(map(int, fields[11:15]))
            processes[pid] = Neighbour(int(fields[_PARENT]), int(fields[_SESSION]), ticks)
    return Look(processes, _stolen())


def neighbours_cpu_s(before: Look, after: Look, session: int) -> float:
    """CPU between two looks of all processes that are not of that session.

    Who has ended meanwhile counts in its parent, but for what it had used before.
    """
    used_before = Counter({pid: process.ticks for pid, process in before.processes.items()})
    for pid, process in before.processes.items():
        if pid not in after.processes:
            used_before[_heir(process, before, after)] += process.ticks
    ticks = [
        max(0, process.ticks - used_before[pid])
        for pid, process in after.processes.items()
        if process.session != session
    ]
    return sum(ticks) / _TICKS_PER_S


def stolen_s(before: Look, after: Look) -> float:
    """CPU between two looks that the machine below gave to others, of all cores together."""
    return (after.stolen - before.stolen) / _TICKS_PER_S


def _heir(gone: Neighbour, before: Look, after: Look) -> int:
    """The closest forebear that is still there."""
    parent = gone.parent
    while parent not in after.processes and parent in before.processes:
        parent = before.processes[parent].parent
    return parent


def _with_ancestors(pid: int) -> set[int]:
    found = set()
    while pid > 0 and (fields := stat(pid)) is not None:
        found.add(pid)
        pid = int(fields[_PARENT])
    return found


def _stolen() -> int:
    return int((PROC / "stat").read_text().split(maxsplit=_STEAL + 1)[_STEAL])
