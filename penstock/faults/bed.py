"""Where a trial takes place: a directory, source and sink of its flow, and what is noted meanwhile."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import penstock
from penstock.bench.harness import Check
from penstock.epochs.commits import last_positions
from penstock.faults import checker
from penstock.faults.items import Numbers, Once, Pass, Witness, numbers
from penstock.faults.row import Outcome
from penstock.faults.victims import wait_until
from penstock.io.schedule import Schedule
from penstock.io.splits import split_number
from penstock.spark.job import Job
from penstock.testing.arrivals import Arrivals, Entries

RATE_PER_S = 600.0
END_S = 90.0
SETTLES_S = 45.0
HELD_S = 4.0
_LOOK_S = 0.5
WARM_ITEMS = 600
SELDOM = "10 min"
"""Commits that far apart come only where a trial asks for one."""
COMMITS_SOON_S = 5.0
W = TypeVar("W", bound=Witness)
SOURCE, TASK, SINK = "numbers", "task", "out"


@dataclass
class Bed:
    """One trial; all that is random in it comes from `chance`."""

    directory: Path
    chance: random.Random
    checkpoint: Path = field(init=False)
    jobs: list[Job] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    _sources: list[Numbers] = field(default_factory=list)
    _struck_ns: int | None = None
    _committed: dict[int, int] = field(default_factory=dict)
    _noted_ns: int = 0
    """When that was looked at: at the first fault."""
    _once: bool = False

    def __post_init__(self) -> None:
        self.checkpoint = self.directory / "checkpoint"

    @property
    def letters(self) -> Path:
        """Where dead letters go."""
        return self.directory / "letters"

    def source(
        self, seconds: float | None, rate: float | Schedule = RATE_PER_S, name: str = SOURCE
    ) -> Numbers:
        """Numbered items; the checker expects all of them if it has an end."""
        made = numbers(rate, seconds, self.directory / "zero", name=name)
        self._sources = [made]
        return made

    def expected(self) -> dict[int, int]:
        """How many items each partition of the source has."""
        return self._sources[0].counts()

    def witness(self, kind: type[W] = Witness) -> W:  # type: ignore[assignment]
        """A sink that shows every arrival."""
        return kind(str(self._kept()))

    def once(self) -> Once:
        """A sink that shows the first arrival of each item, as `dedup_jsonl` writes it."""
        self._once = True
        return Once(self._kept())

    def flow(
        self, seconds: float | None, task: Any = Pass, sink: Any = None, **options: Any
    ) -> penstock.Flow:
        """Source, task with two replicas, sink; `options` are those of the task."""
        flow = penstock.Flow("trial", ids=isinstance(sink, Once))
        source = flow.source(self.source(seconds), name=SOURCE)
        passed = source.task(task, **{"name": TASK, "parallelism": 2, **options})
        passed.sink(self.witness() if sink is None else sink, name=SINK)
        return flow

    def run(self, flow: penstock.Flow, **options: Any) -> Job:
        """Start it on the trial's checkpoint, on the Spark that is there."""
        job = penstock.run(
            flow,
            **{
                "checkpoint": self.checkpoint,
                "dead_letters": self.letters,
                "on_notice": self._hear,
                **options,
            },
        )
        self.jobs.append(job)
        return job

    def flowing(self, flow: penstock.Flow, items: int = WARM_ITEMS, **options: Any) -> Job:
        """The same, and a first commit when some items more have arrived."""
        before = len(self.entries())
        job = self.run(flow, **options)
        self.await_items(before + items, job)
        await_commit(job)
        return job

    def await_items(self, count: int, job: Job | None = None) -> None:
        """Until so many have arrived, or the flow has failed."""
        reader = Arrivals(Witness(str(self._kept())))
        seen = 0

        def enough() -> bool:
            nonlocal seen
            seen = len(self.entries()) if self._once else seen + len(reader.new())
            return seen >= count or (job is not None and job.await_end(0))

        wait_until(enough, f"{count} items arrive", END_S)

    def await_taken(self, job: Job, count: int = WARM_ITEMS) -> None:
        """Until the sink tells that it was given so many, or the flow has failed."""

        def enough() -> bool:
            return job.await_end(0) or job.metrics().tasks[SINK].items_in >= count

        wait_until(enough, f"the sink takes {count} items", END_S)

    def strike(self, fault: Callable[[], Any], least_s: float = 0.2, most_s: float = 1.0) -> None:
        """At a random time from now: what is committed is noted, then the fault is made."""
        wait_s = self.chance.uniform(least_s, most_s)
        time.sleep(wait_s)
        if not self._committed:
            self._committed, self._noted_ns = committed(self.checkpoint), time.monotonic_ns()
        self._struck_ns = time.monotonic_ns()
        self.figures.setdefault("struck_after_s", []).append(round(wait_s, 3))
        fault()

    def healed(self) -> None:
        """The fault is over from now on: recovery counts from here."""
        self._struck_ns = time.monotonic_ns()

    def end(self, job: Job, within_s: float = END_S) -> None:
        """Until the flow has come to its end by itself."""
        self._ended(job, well=job.await_termination(within_s))

    def _ended(self, job: Job, *, well: bool) -> None:
        self.expect("ends well", well)
        metrics = job.metrics()
        if metrics.restarts:
            self.figures |= {
                "restarts": metrics.restarts,
                "down_s": round(metrics.down_s, 2),
                "told": self.notices,
            }

    def settle(self, job: Job, within_s: float = SETTLES_S) -> dict[int, int]:
        """Until the bound has held for some seconds again, then stop; how many items that must have been."""
        assert self._struck_ns is not None, "a flow settles after a fault"
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s and not job.await_end(_LOOK_S):
            entries = self.entries()
            recovered_s = checker.recovered_s(entries, self._struck_ns)
            if (
                recovered_s is not None
                and checker.remaining_s(entries, self._struck_ns) >= recovered_s + HELD_S
            ):
                break
        due = self._due()
        job.stop(END_S)
        self._ended(job, well=job.status.state == "stopped")
        read = committed(self.checkpoint)
        self.expect("items read, of those due at the end", sum(read.values()), ">=", due)
        return read

    def _due(self) -> int:
        """How many items of the source are due by now."""
        since_s = (time.monotonic_ns() - int((self.directory / "zero").read_text())) * 1e-9
        return int(self._sources[0].paced.schedule.items_by(since_s))

    def expect(self, name: str, value: float | bool | None, op: Any = "==", bar: float = 1) -> None:  # noqa: FBT001
        """A check of this row alone; a condition is to be true."""
        self.checks.append(Check(name, None if value is None else float(value), op, bar))

    def refused(
        self, act: Callable[[], Any], *words: str, error: type[Exception] = penstock.FlowError
    ) -> str:
        """Whether something is refused, or fails, with all of these words; what was said."""
        try:
            act()
        except error as problem:
            said = str(problem)
        else:
            said = ""
        missing = [word for word in words if word not in said]
        self.figures.setdefault("said", []).append(said.splitlines()[0] if said else "nothing")
        self.expect("told in words", bool(said) and not missing)
        return said

    def entries(self) -> Entries:
        """Everything that arrived so far."""
        kept = self._kept()
        return checker.written_once(kept) if self._once else Arrivals(Witness(str(kept))).new()

    def outcome(
        self, *, counts: dict[int, int] | None = None, put_aside: int = 0, keys: int | None = None
    ) -> Outcome:
        """All checks of the items. `counts` are those that must have come, by default all of the source;
        `put_aside` of them must not have. With so many `keys` those of a key are in order, not of a channel.
        """
        entries = self.entries()
        expected = self.expected() if counts is None else counts
        figures = {**self.figures, "items": len(entries), "duplicated": entries.duplicated()}
        checks = [
            *self.checks,
            Check("lost", entries.lost(expected) - put_aside, "==", 0),
            Check("reordered in a channel", entries.reordered_by_mark(), "==", 0)
            if keys is None
            else Check("reordered of a key", checker.reordered_of_a_key(entries, keys), "==", 0),
        ]
        if self._once:
            checks.append(Check("twice in dedup_jsonl", entries.duplicated(), "==", 0))
        elif self._struck_ns is None:
            checks.append(Check("twice without a fault", entries.duplicated(), "==", 0))
        if self._struck_ns is None:
            return Outcome(figures, checks)
        twice = checker.twice_though_committed(entries, self._committed, self._noted_ns)
        checks.append(Check("twice though committed", twice, "==", 0))
        figures["remaining_s"] = round(checker.remaining_s(entries, self._struck_ns), 2)
        checks.append(Check("items due after the fault, s", figures["remaining_s"], ">", 0))
        return Outcome(figures, checks, checker.recovered_s(entries, self._struck_ns))

    def _hear(self, notice: str) -> None:
        """What the flow tells, with the seconds since the last fault."""
        since_s = 0.0 if self._struck_ns is None else (time.monotonic_ns() - self._struck_ns) * 1e-9
        self.notices.append(f"{since_s:.1f} s: {notice}")

    def _kept(self) -> Path:
        kept = self.directory / "kept"
        kept.mkdir(exist_ok=True)
        return kept


def await_commit(job: Job) -> None:
    """Until a commit has what has arrived: the second from now on, or one that is made where few are."""
    before = job.metrics().commits
    if before is None or job.commit_s > COMMITS_SOON_S:
        job.boundary()
        return

    def enough() -> bool:
        now = job.metrics().commits
        return job.await_end(0) or (now is not None and now.count >= before.count + 2)

    wait_until(enough, "a commit is made", END_S)


def committed(checkpoint: Path, source: str = SOURCE) -> dict[int, int]:
    """How many items of each split of a source the last commit covers; none without a commit."""
    splits = last_positions(checkpoint).get(source, {})
    return {split_number(split): position.ordinal for split, position in splits.items()}
