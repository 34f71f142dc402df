"""What commits cost: the same light flow with commits 30 s apart and with none, in turn."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

import penstock
from penstock.apps.rate_limited import RateLimited
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result
from penstock.bench.latency import same
from penstock.spark.job import Job
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import Entries, arrivals

BOUND_MS = 20.0
REPLICAS, CAPACITY_PER_S = 4, 500.0
RATE_PER_S = REPLICAS * CAPACITY_PER_S / 5
SLOTS = REPLICAS + 2
WINDOWS_S = (1.0, 5.0)
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Length:
    """Of the first warm-up, which is a run of its own, of that of each turn, and of what counts in a turn."""

    turns: int
    first_s: float
    warm_up_s: float
    counted_s: float
    commit: str


LENGTHS = {
    Effort.QUICK: Length(1, 5.0, 4.0, 10.0, "5 s"),
    Effort.FULL: Length(2, 20.0, 5.0, 60.0, "30 s"),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One run: what arrived, from when to when it counts, every gap, and what went wrong."""

    entries: Entries
    begin_ns: int
    end_ns: int
    gaps_ms: tuple[float, ...]
    lost: int
    duplicated: int

    def means_ms(self, window_s: float) -> list[float | None]:
        """Of the latency of the items due in one window after the other, from due time to sink."""
        width_ns = round(window_s * 1e9)
        begins = range(self.begin_ns, self.end_ns - width_ns + 1, width_ns)
        found = (self.entries.due_between(begin, begin + width_ns).latency_ms() for begin in begins)
        return [float(latency_ms.mean()) if len(latency_ms) else None for latency_ms in found]


def bench(effort: Effort) -> Result:
    """Both in turn, after a run that only warms up."""
    length = LENGTHS[effort]
    bench_session(SLOTS)
    run(None, 0.0, length.first_s)
    turns: dict[str, list[Turn]] = {"with": [], "without": []}
    for _ in range(length.turns):
        for name, taken in turns.items():
            commit = length.commit if name == "with" else None
            taken.append(run(commit, length.warm_up_s, length.counted_s))
    return summarise(turns, length.commit)


def run(commit: str | None, warm_up_s: float, counted_s: float) -> Turn:
    """A turn; without commits means that none comes before its end."""
    with Ledger() as ledger, tempfile.TemporaryDirectory(prefix="penstock-bench-") as checkpoint:
        flow = penstock.Flow("commits")
        items = flow.source(penstock.paced(stamped, RATE_PER_S), name="items")
        work = RateLimited(same, CAPACITY_PER_S)
        items.map(work, name="work", parallelism=REPLICAS).sink(ledger, name="ledger")
        job = penstock.run(flow, checkpoint=checkpoint, commit=commit or "1 h", commit_by="boundaries")
        gaps_ms: list[float] = []
        watch(job, warm_up_s, gaps_ms)
        begin_ns = time.monotonic_ns()
        watch(job, counted_s, gaps_ms)
        end_ns = time.monotonic_ns()
        job.stop()
        entries = arrivals(ledger)
    lost = entries.lost({0: job.metrics().tasks["items"].items_in})
    return Turn(entries, begin_ns, end_ns, tuple(gaps_ms), lost, entries.duplicated())


def watch(job: Job, seconds: float, gaps_ms: list[float]) -> None:
    """Wait, and add the gap of every boundary that is over."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        time.sleep(min(LOOK_S, max(0.0, end_s - time.monotonic())))
        boundary = job.last_boundary()
        if boundary is None or time.monotonic() - boundary.ended_at_s < LOOK_S / 5:
            continue  # one that lasts ends now, by what the handle says
        if boundary.gap_ms not in gaps_ms:
            gaps_ms.append(boundary.gap_ms)


def held_share(turns: Sequence[Turn], window_s: float) -> float | None:
    """The share of all windows whose mean latency was within the bound; one without items was not."""
    means = [mean for turn in turns for mean in turn.means_ms(window_s)]
    held = sum(mean is not None and mean <= BOUND_MS for mean in means)
    return held / len(means) if means else None


def summarise(turns: dict[str, list[Turn]], commit: str) -> Result:
    """No bar for what commits cost: it stands next to what holds without them."""
    figures: dict[str, Any] = {"rate_per_s": RATE_PER_S, "bound_ms": BOUND_MS, "commits_apart": commit}
    for name, taken in turns.items():
        latency_ms = numpy.concatenate(
            [turn.entries.due_between(turn.begin_ns, turn.end_ns).latency_ms() for turn in taken]
        )
        known = len(latency_ms) > 0
        figures[f"{name}_commits"] = {
            **{f"held_share_of_{window_s:g}_s": held_share(taken, window_s) for window_s in WINDOWS_S},
            "mean_ms": float(latency_ms.mean()) if known else None,
            "p50_ms": float(numpy.quantile(latency_ms, 0.5)) if known else None,
            "p99_ms": float(numpy.quantile(latency_ms, 0.99)) if known else None,
            "worst_ms": float(latency_ms.max()) if known else None,
            "gaps_ms": [gap for turn in taken for gap in turn.gaps_ms],
        }
    everything = [turn for taken in turns.values() for turn in taken]
    checks = [
        Check("items lost", sum(turn.lost for turn in everything), "==", 0),
        Check("items duplicated", sum(turn.duplicated for turn in everything), "==", 0),
        Check("fewest gaps of a turn with commits", min(len(t.gaps_ms) for t in turns["with"]), ">=", 1),
    ]
    return Result("commits", figures, checks)
