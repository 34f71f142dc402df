"""What commits by epoch marks cost a flow: one each second against none, side by side.

A keyed count of 10,000 items/s in envelopes of 20 ms has 100,000 keys, of which 10,000 change in a second.
"""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.beside import Beside
from penstock.bench.harness import Check, Effort, median, median_ratio, ratio
from penstock.bench.keyed import KEYS, LIFETIME, Counted, Sampled, key_of
from penstock.bench.state_count import SLOTS
from penstock.bench.state_disk import StateFiles
from penstock.bench.telling import tell, turns
from penstock.processes import name_of, steady_cpu_of, tree
from penstock.spark.job import Job
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import arrivals

RATE_PER_S: Final = 10_000.0
FILL_S: Final = KEYS / RATE_PER_S
COMMIT: Final = "1 s"
FEWEST_SHARE: Final = 0.7
"""Of the commits that a turn has time for."""
KINDS: Final = ("driver", "java", "workers")
BARS: Final = {"p50_ms": 1.1, "p99_ms": 1.5, "cpu_us_per_item": 1.1}
CONTESTANTS: Final = ("with", "without")
WARM_UP_S: Final = 10.0
"""Of a run with commits before all turns, which does not count: Java compiles what is new to it meanwhile."""
VALID_LAG_MS: Final = 10.0
"""A source that batches sleeps for 5 ms: no item is much later than that."""
_LOOK_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Length:
    """How many turns, how long after all keys are known each is looked at, and for how long."""

    turns: int
    settle_s: float
    counted_s: float


LENGTHS: Final = {Effort.QUICK: Length(1, 3.0, 15.0), Effort.FULL: Length(6, 4.0, 20.0)}


@dataclass(frozen=True, slots=True)
class Asked:
    """For a turn."""

    length: Length
    commits: bool


@dataclass(frozen=True, slots=True)
class Commits:
    """Those of a turn: how many, how long each took, voids, bytes of their files, bytes of the checkpoint."""

    count: int = 0
    took_ms: tuple[float, ...] = ()
    voids: int = 0
    changes_bytes: tuple[int, ...] = ()
    base_bytes: tuple[int, ...] = ()
    written_bytes: int = 0
    checkpoint_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One run, from when all keys were known."""

    p50_ms: float
    p99_ms: float
    worst_ms: float
    cpu_us_per_item: float
    lag_p99_ms: float
    missing: int
    """Items that were read and did not arrive; less than 0 if some came twice."""
    cpu_us_by: Mapping[str, float]
    """The same CPU by kind of process."""
    commits: Commits = Commits()


def each_second(effort: Effort) -> tuple[dict[str, Any], list[Check]]:
    """Both at the same time, in two processes, which have commits in turn."""
    length = LENGTHS[effort]
    taken: dict[str, list[Turn | None]] = {name: [] for name in CONTESTANTS}
    with Beside(turn, len(CONTESTANTS)) as both:
        tell("  warm-up")
        both.at_once([Asked(Length(1, 0.0, WARM_UP_S), commits=True)] * 2)
        for number in turns(length.turns):
            names = CONTESTANTS if number % 2 == 0 else CONTESTANTS[::-1]
            found = both.at_once([Asked(length, name == "with") for name in names])
            for name, one in zip(names, found, strict=True):
                taken[name].append(one)
    return summarise(taken, length)


def turn(asked: Asked) -> Turn | None:
    """In a process of its own."""
    bench_session(SLOTS)
    return run(asked.length, commits=asked.commits)


def flow(ledger: Ledger) -> penstock.Flow:
    """source -> count by key -> ledger, in envelopes of 20 ms."""
    chosen = penstock.Flow("commit")
    items = chosen.source(penstock.paced(stamped, RATE_PER_S), name="items").batched(LIFETIME)
    items.by_key(key_of).task(Counted, name="count").batched(LIFETIME).sink(ledger, name="ledger")
    return chosen


def run(length: Length, *, commits: bool) -> Turn | None:
    """A turn; None if nothing came while it counted."""
    with Sampled() as ledger, tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
        checkpoint, commit = (place, COMMIT) if commits else (None, "1 h")
        job = penstock.run(flow(ledger), checkpoint=checkpoint, commit=commit, policy=None)
        if job.await_end(FILL_S + length.settle_s):
            raise RuntimeError(f"the flow has ended: {job.exception()}")
        files = StateFiles(Path(place))
        files.look()
        before_bytes = files.bytes
        begin_ns, before_s = time.monotonic_ns(), cpu_by_kind()
        known = watch(job, files, length.counted_s)
        spent_s = {kind: cpu_s - before_s[kind] for kind, cpu_s in cpu_by_kind().items()}
        end_ns = time.monotonic_ns()
        checkpoint_bytes = files.whole_bytes() if commits else 0
        job.stop()
        entries = arrivals(ledger)
        tasks = job.metrics().tasks
    counted = entries.due_between(begin_ns, end_ns)
    if not len(counted):
        return None
    by_kind = {kind: cpu_s * 1e6 / (len(counted) * Sampled.EACH) for kind, cpu_s in spent_s.items()}
    p50_ms, p99_ms, worst_ms = (float(v) for v in numpy.percentile(counted.latency_ms(), [50, 99, 100]))
    return Turn(
        p50_ms,
        p99_ms,
        worst_ms,
        sum(by_kind.values()),
        float(numpy.percentile(counted.mark, 99)) * 1e-6,
        tasks["items"].items_in - tasks["ledger"].items_in,
        by_kind,
        Commits(
            len(known),
            tuple(known.values()),
            0 if (of_job := job.metrics().commits) is None else of_job.voids,
            tuple(files.of("changes")),
            tuple(files.of("base")),
            files.bytes - before_bytes,
            checkpoint_bytes,
        ),
    )


def cpu_by_kind() -> dict[str, float]:
    """CPU seconds so far of the driver, of Java, and of the workers with what forks them."""
    found = dict.fromkeys(KINDS, 0.0)
    for pid in tree(os.getpid()):
        kind = "driver" if pid == os.getpid() else "java" if name_of(pid) == "java" else "workers"
        found[kind] += steady_cpu_of([pid])
    return found


def watch(job: Job, files: StateFiles, seconds: float) -> dict[int, float]:
    """Wait; how long each commit took that came meanwhile, by its epoch."""
    end_s = time.monotonic() + seconds
    known: dict[int, float] = {}
    last = job.metrics().commits
    first = None if last is None else last.epoch
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(_LOOK_S, left_s))
        files.look()
        commits = job.metrics().commits
        if commits is not None and commits.epoch not in (None, first) and commits.took_ms is not None:
            assert commits.epoch is not None
            known[commits.epoch] = commits.took_ms
    return known


def summarise(
    taken: Mapping[str, Sequence[Turn | None]], length: Length
) -> tuple[dict[str, Any], list[Check]]:
    """Medians of the ratios within the turns."""
    ran = {name: [one for one in turns if one is not None] for name, turns in taken.items()}
    figures: dict[str, Any] = {
        "rate_per_s": RATE_PER_S,
        "keys": KEYS,
        "changed_keys_per_s": RATE_PER_S,
        "lifetime": LIFETIME,
        **{
            name: {
                part: [getattr(one, part) for one in turns]
                for part in (*BARS, "worst_ms", "lag_p99_ms", "missing")
            }
            | {f"{kind}_cpu_us": [one.cpu_us_by.get(kind) for one in turns] for kind in KINDS}
            for name, turns in ran.items()
        },
        "commits": [_shown(one.commits) for one in ran["with"]],
    }
    checks = [
        Check(
            f"{part.replace('_', ' ')}, with / without commits",
            median_ratio(_values(taken["with"], part), _values(taken["without"], part)),
            "<=",
            bar,
        )
        for part, bar in BARS.items()
    ]
    everything = [one for turns in ran.values() for one in turns]
    fewest = min((one.commits.count for one in ran["with"]), default=None)
    lag_ms = max((one.lag_p99_ms for one in everything), default=None)
    checks += [
        Check("fewest commits of a turn", fewest, ">=", FEWEST_SHARE * length.counted_s),
        Check("void epochs", sum(one.commits.voids for one in ran["with"]), "==", 0),
        Check("items lost or duplicated", sum(abs(one.missing) for one in everything), "==", 0),
        Check("turns without items", sum(one is None for turns in taken.values() for one in turns), "==", 0),
        Check("valid run: worst source lag p99, ms", lag_ms, "<=", VALID_LAG_MS),
    ]
    return figures, checks


def _values(turns: Sequence[Turn | None], part: str) -> list[float | None]:
    return [None if one is None else getattr(one, part) for one in turns]


def _shown(commits: Commits) -> dict[str, Any]:
    return {
        "count": commits.count,
        "voids": commits.voids,
        "median_took_ms": median(commits.took_ms),
        "longest_ms": max(commits.took_ms, default=None),
        "disk_bytes_per_commit": ratio(commits.written_bytes, commits.count),
        "changes_bytes": median(commits.changes_bytes),
        "base_bytes": max(commits.base_bytes, default=None),
        "checkpoint_bytes": commits.checkpoint_bytes,
    }
