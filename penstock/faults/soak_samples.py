"""What the processes of a soak hold: memory, threads and descriptors, by kind, again and again.

Of the samples of the last two thirds, growth = median of their last third - median of their first third.
"""

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from typing import Final, Literal, get_args

import msgspec

from penstock import processes
from penstock.bench.harness import Check
from penstock.faults.leftovers import descriptors
from penstock.faults.victims import ZYGOTE, command, executors, is_java, zygotes

Kind = Literal["driver", "driver's Java", "executor", "zygote", "worker"]
Quantity = Literal["memory_mb", "heap_mb", "threads", "descriptors"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
HEAP_EVERY: Final = 6
_USED = re.compile(r"used (\d+)K")
_SHARE, _MB, _COUNT = 0.02, 2.0, 2.0
_POOLS = ("block-manager-", "rpc-server-")


class Held(msgspec.Struct, frozen=True):
    """The mean over the processes of a kind; the heap is that after a collection, of Java, now and then."""

    memory_mb: float
    threads: float
    descriptors: float
    heap_mb: float | None = None


class Sample(msgspec.Struct, frozen=True):
    """At one moment, in seconds since the start."""

    at_s: float
    kinds: dict[str, Held]


def sample(at_s: float, *, with_heap: bool) -> Sample:
    """Of this process and all below it."""
    by_kind: dict[Kind, list[int]] = {kind: [] for kind in KINDS}
    parents, carriers = set(zygotes()), set(executors())
    for pid in processes.tree(os.getpid()):
        kind = _kind(pid, parents, carriers)
        if kind is not None:
            by_kind[kind].append(pid)
    held = {
        kind: _held(pids, with_heap and kind in ("driver's Java", "executor"))
        for kind, pids in by_kind.items()
    }
    return Sample(at_s, {kind: one for kind, one in held.items() if one is not None})


def growth(samples: Sequence[Sample], kind: Kind, quantity: Quantity) -> tuple[float, float] | None:
    """By how much a quantity grew over the last two thirds, and how much there was; None if unknown."""
    if not samples:
        return None
    begin_s = samples[-1].at_s / 3
    known = [
        value
        for one in samples
        if one.at_s >= begin_s and kind in one.kinds
        if (value := getattr(one.kinds[kind], quantity)) is not None
    ]
    part = len(known) // 3
    if not part:
        return None
    first, last = statistics.median(known[:part]), statistics.median(known[-part:])
    return last - first, first


def checks(samples: Sequence[Sample]) -> list[Check]:
    """Nothing grows by more than 2 %, or by more than 2 MB, threads or descriptors if that is more."""
    found = []
    for kind in KINDS:
        for quantity in get_args(Quantity):
            if quantity == "heap_mb" and kind not in ("driver's Java", "executor"):
                continue
            grown = growth(samples, kind, quantity)
            least = _MB if quantity.endswith("_mb") else _COUNT
            bar = least if grown is None else max(least, _SHARE * grown[1])
            name = f"{kind}: {quantity} grown"
            found.append(Check(name, None if grown is None else round(grown[0], 2), "<=", round(bar, 2)))
    return found


def _kind(pid: int, parents: set[int], carriers: set[int]) -> Kind | None:
    if pid == os.getpid():
        return "driver"
    if pid in carriers:
        return "executor"
    if pid in parents:
        return "zygote"
    if is_java(pid):
        return "driver's Java"
    return "worker" if ZYGOTE in command(pid) else None


def _held(pids: Sequence[int], with_heap: bool) -> Held | None:  # noqa: FBT001
    memory = [mb for pid in pids if (mb := processes.pss_mb(pid)) is not None]
    if not memory:
        return None
    heaps = [mb for pid in pids if with_heap and (mb := _heap_mb(pid)) is not None]
    return Held(
        statistics.mean(memory),
        statistics.mean(_threads(pid) for pid in pids),
        statistics.mean(descriptors(pid) for pid in pids),
        statistics.mean(heaps) if heaps else None,
    )


def _threads(pid: int) -> int:
    """Without pools of Spark that fill up over time, used or not: those of its block manager to 100 and 128
    threads, the event loops of its driver to eight, by one for each new executor.
    """
    names = []
    for thread in (processes.PROC / str(pid) / "task").glob("*"):
        with contextlib.suppress(OSError):  # it has just ended
            names.append((thread / "comm").read_text())
    return sum(not name.startswith(_POOLS) for name in names)


def _heap_mb(pid: int) -> float | None:
    """After a collection; None for a process that has just gone, or without the tool of a JDK."""
    tool = shutil.which("jcmd")
    if tool is None:
        return None
    for words in (["GC.run"], ["GC.heap_info"]):
        said = subprocess.run([tool, str(pid), *words], capture_output=True, text=True, check=False).stdout
    used = _USED.search(said)
    return None if used is None else int(used[1]) / 1024


def now_s(began_s: float) -> float:
    """Seconds since the start."""
    return round(time.monotonic() - began_s, 2)
