"""An hour of load with random kills: all that is checked of a trial, and whether anything grows."""

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

import penstock
from penstock.bench.harness import Check, Result, median
from penstock.faults import checker
from penstock.faults.bed import SINK, SOURCE, TASK, Bed
from penstock.faults.items import Pass
from penstock.faults.leftovers import left_behind, look
from penstock.faults.rows_executors import RECOVERS_IN_S as EXECUTOR_RECOVERS_IN_S
from penstock.faults.rows_workers import RECOVERS_IN_S as WORKER_RECOVERS_IN_S
from penstock.faults.sessions import CLUSTER, LOCAL_SLOTS
from penstock.faults.soak_samples import HEAP_EVERY, Sample, now_s, sample
from penstock.faults.soak_samples import checks as checks_of_samples
from penstock.faults.trial import quiet, warm_up
from penstock.faults.victims import NotInTimeError, carriers, kill, kill_worker
from penstock.io.schedule import Schedule
from penstock.spark.job import Job
from penstock.testing.arrivals import Entries

Victim = Literal["worker", "executor"]
EVERY_S: Final[dict[Victim, float]] = {"worker": 60.0, "executor": 300.0}
# All of a heap is there from the start: G1 makes it larger and smaller as it likes, by tens of MB, and what
# grows beside it could not be seen; nor whether an executor has more memory than another that is younger.
FIXED_HEAPS: Final = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch",
    "spark.executor.extraJavaOptions": "-Xms1024m -XX:+AlwaysPreTouch",
}
SAMPLE_S: Final = 10.0
CALM_S: Final = 20.0
DRAIN_S: Final = 180.0
_LOOK_S = 0.2


class Fault(msgspec.Struct, frozen=True):
    """A process that was killed, and when, in seconds since the start."""

    at_s: float
    victim: Victim


@dataclass
class Soak:
    """What came of it; times are seconds since `began_ns`."""

    seed: int
    seconds: float
    load: str
    began_ns: int = 0
    faults: list[Fault] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    restarts: int = 0
    left: list[str] = field(default_factory=list)


def soak(about: Soak, schedule: Schedule, say: Callable[[str], None]) -> tuple[Result, Entries]:
    """Run it to its end; the result, and everything that arrived."""
    say(f"{about.seconds / 60:g} min of {about.load}, seed {about.seed}")
    penstock.session(LOCAL_SLOTS, CLUSTER, FIXED_HEAPS, least=0)
    warm_up()
    before = look()
    with tempfile.TemporaryDirectory(prefix="penstock-trial-") as directory:
        bed = Bed(Path(directory), random.Random(about.seed), notices=about.notices)
        flow = penstock.Flow("soak", ids=True)
        source = flow.source(bed.source(about.seconds, schedule), name=SOURCE)
        source.batched("2 ms").task(Pass, name=TASK, parallelism=2).sink(bed.once(), name=SINK)
        job = bed.run(flow, restarts=1000)
        with quiet():
            _disturb(job, about, bed.chance, say)
            bed.end(job, DRAIN_S)
        about.restarts = job.metrics().restarts
        entries = bed.entries()
        items = bed.outcome()
    about.left = left_behind(before)
    return _result(about, entries, items.checks), entries


def _disturb(job: Job, about: Soak, chance: random.Random, say: Callable[[str], None]) -> None:
    """Kill and look until the load ends."""
    began_s = time.monotonic()
    about.began_ns = time.monotonic_ns()
    due_s = {victim: chance.expovariate(1 / every_s) + CALM_S for victim, every_s in EVERY_S.items()}
    next_sample_s = 0.0
    while not job.await_end(_LOOK_S) and (at_s := now_s(began_s)) < about.seconds:
        if at_s >= next_sample_s:
            about.samples.append(sample(at_s, with_heap=len(about.samples) % HEAP_EVERY == 0))
            next_sample_s += SAMPLE_S
        for victim, when_s in due_s.items():
            # The last faults come so early that the flow can be seen to recover.
            if at_s >= when_s and at_s < about.seconds - 2 * CALM_S:
                due_s[victim] = at_s + chance.expovariate(1 / EVERY_S[victim]) + CALM_S / 4
                if _struck(job, victim, chance):
                    about.faults.append(Fault(now_s(began_s), victim))
                    say(f"{at_s:.0f} s: killed: {victim}, {len(about.faults)} so far")


def _struck(job: Job, victim: Victim, chance: random.Random) -> bool:
    """Whether somebody was there to be killed."""
    with suppress(ProcessLookupError, NotInTimeError, IndexError):
        if victim == "executor":
            kill(chance.choice(carriers(job)))
        else:
            kill_worker(job, chance.choice([SOURCE, TASK, SINK]), chance)
        return True
    return False


def _result(about: Soak, entries: Entries, checks: Sequence[Check]) -> Result:
    recoveries = {victim: _recoveries(about, entries, victim) for victim in EVERY_S}
    bars = {"worker": WORKER_RECOVERS_IN_S, "executor": EXECUTOR_RECOVERS_IN_S}
    told = [
        Check(f"bound holds again after a kill ({victim}), median s", median(times), "<=", bars[victim])
        for victim, times in recoveries.items()
        if times
    ]
    figures = {
        "seed": about.seed,
        "seconds": about.seconds,
        "load": about.load,
        "items": len(entries),
        "killed": {victim: len(times) for victim, times in recoveries.items()},
        "recovered_s": recoveries,
        "restarts": about.restarts,
        "windows_held": checker.held_share(entries),
        "left_behind": about.left,
    }
    every = [
        *checks,
        *told,
        *checks_of_samples(about.samples),
        Check("left behind", len(about.left), "==", 0),
    ]
    return Result("soak", figures, every)


def _recoveries(about: Soak, entries: Entries, victim: Victim) -> list[float]:
    struck_ns = [about.began_ns + round(f.at_s * 1e9) for f in about.faults if f.victim == victim]
    times = [checker.settled_s(entries, at_ns) for at_ns in struck_ns]
    return [time for time in times if time is not None]
