"""CPU time and memory of processes, from /proc: of this one and of everything it has started."""

import os
from pathlib import Path

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat after the name (which may hold anything), None for a process that is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    parents = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            parents[int(entry.name)] = int(fields[1])
    found, frontier = [root], [root]
    while frontier:
        frontier = [pid for pid, parent in parents.items() if parent in frontier]
        found += frontier
    return found


def cpu_s(root: int | None = None) -> float:
    """CPU seconds of a process and its descendants so far, and of those it has waited for."""
    ticks = 0
    for pid in tree(os.getpid() if root is None else root):
        fields = _stat(pid)
        if fields is not None:
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS_PER_S


def jit_s(root: int | None = None) -> float:
    """Of that, the part of the threads in which Java virtual machines compile; ended ones do not count."""
    ticks = 0
    for pid in tree(os.getpid() if root is None else root):
        for thread in (PROC / str(pid) / "task").glob("*"):
            try:
                name, _, rest = (thread / "stat").read_text().partition("(")[2].rpartition(")")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if name.startswith(("C1 Compiler", "C2 Compiler")):
                ticks += sum(map(int, rest.split()[11:13]))
    return ticks / _TICKS_PER_S


def pss_mb(pid: int) -> float | None:
    """Proportional set size: what is shared counts by its share; None if the system does not tell."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return sizes[0] / 1024 if sizes else None
