"""CPU time and memory of processes, from /proc: of this one and of everything it has started."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SCHEDULER_CLOCK = 2  # CPUCLOCK_SCHED of the kernel: all threads, system and user


def stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the name (which may hold anything), None for a process that is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def name_of(pid: int) -> str | None:
    """The name of its program, as the kernel has it; None for a process that is gone."""
    try:
        return (PROC / str(pid) / "comm").read_text().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return None


def identity(pid: int) -> str | None:
    """A process for good: its number, which is used again one day, and when it was started (in ticks)."""
    fields = stat(pid)
    return None if fields is None else f"{pid} {fields[19]}"


def is_alive(who: str) -> bool:
    """Whether the process that had this identity is still there."""
    return identity(int(who.split()[0])) == who


def system() -> str:
    """Where an identity means something: this boot of the kernel, and its numbers of processes."""
    boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {(PROC / 'self/ns/pid').readlink()}"


def all_pids() -> list[int]:
    """Every process that can be seen from here."""
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    parents = {pid: int(fields[1]) for pid in all_pids() if (fields := stat(pid)) is not None}
    found, frontier = [root], [root]
    while frontier:
        frontier = [pid for pid, parent in parents.items() if parent in frontier]
        found += frontier
    return found


def cpu_s(root: int | None = None) -> float:
    """CPU seconds of a process and its descendants so far, and of those it has waited for."""
    ticks = 0
    for pid in tree(os.getpid() if root is None else root):
        fields = stat(pid)
        if fields is not None:
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS_PER_S


def steady_cpu_s(root: int | None = None) -> float:
    """CPU seconds, exact to the microsecond, of a process and its descendants that are there now.

    Without the threads in which Java virtual machines compile: they are busy after a start and not for items.
    """
    return steady_cpu_of(tree(os.getpid() if root is None else root))


def steady_cpu_of(pids: Iterable[int]) -> float:
    """The same of these processes alone."""
    return sum(_process_s(pid) - _compiling_s(pid) for pid in pids)


def _process_s(pid: int) -> float:
    """By the CPU clock that Linux keeps for each process; 0 for one that is gone."""
    try:
        return time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)
    except OSError:
        return 0.0


def _compiling_s(pid: int) -> float:
    total_ns = 0
    for thread in (PROC / str(pid) / "task").glob("*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (thread / "comm").read_text().startswith(("C1 Compiler", "C2 Compiler")):
                total_ns += int((thread / "schedstat").read_text().split()[0])
    return total_ns * 1e-9


def pss_mb(pid: int) -> float | None:
    """Proportional set size: what is shared counts by its share; None if the system does not tell."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return sizes[0] / 1024 if sizes else None
