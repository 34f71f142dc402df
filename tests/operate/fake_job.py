"""A running flow without Spark, as commands see one."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.control.by_hand import Mode
from penstock.control.decision_log import Entry
from penstock.control.status import FlowStatus
from penstock.durations import Duration, milliseconds, seconds
from penstock.flow.layers import Layout, lay_out
from penstock.observe.progress import Status
from penstock.observe.reported import CommitTotals, Metrics, TaskMetrics
from penstock.operate.commands import Commands
from penstock.operate.protocol import Greeting
from penstock.operate.server import Server
from penstock.stats.sketch import Sketch
from penstock.wire.divisions import Spans


@dataclass(frozen=True)
class FakeDrained:
    """Ten items."""

    commit: int | None
    items: Mapping[str, int]
    took_s: float

    def __str__(self) -> str:
        return "drained: ten items"


class FakeControl:
    """A policy that can be switched."""

    def __init__(self) -> None:
        self.mode: Mode = "on"

    @property
    def applies(self) -> bool:
        """As the real one."""
        return self.mode == "on"

    def set_mode(self, mode: Mode) -> None:
        """Noted."""
        self.mode = mode

    def status(self) -> FlowStatus:
        """Nothing decided yet."""
        return FlowStatus(
            flow="primes",
            state="running",
            message="batch 0",
            policy="nephele",
            applies=self.applies,
            mode=self.mode,
            interval_s=5.0,
            at_s=100.0,
        )


class FakeJob:
    """Source "numbers", task "work" (1 to 20, pool of 8, 2 active), sink "out"; constraint "quick"."""

    def __init__(self, name: str = "primes") -> None:
        flow = ps.Flow(name)
        numbers = flow.source(ps.paced(lambda partition, index, seed: index, 1), name="numbers")
        worked = numbers.map(abs, name="work", parallelism=ps.elastic(1, 20, initial=2))
        worked.sink(print, name="out")
        flow.constrain("20 ms", ["numbers->work", "work", "work->out"], name="quick")
        self.layout: Layout = lay_out(flow.graph())
        self.slots = 30
        self.status = Status("running", "batch 3")
        self.control: FakeControl | None = None
        self.recent_progress: list[dict[str, Any]] = []
        self.active = {"numbers": 1, "work": 2, "out": 1}
        self.lag_items: int | None = None
        self.lifetimes = {"numbers->work": 5.0, "work->out": 0.0}
        self.paused: set[str] = set()
        self.adapted: list[Mapping[str, int] | None] = []
        self.logged: list[Entry] = []
        self.commits: CommitTotals | None = None
        self.keyed: dict[str, Any] = {}
        self.problem: Exception | None = None
        self.stop_timeout_s: float | None = None
        self.when_stopped: Callable[[], None] = lambda: None

    def metrics(self) -> Metrics:
        """Of all tasks; the sink has a latency."""
        tasks = {name: TaskMetrics(n, self.layout.unit_of(name).pool) for name, n in self.active.items()}
        for name in self.paused:
            tasks[name].paused = True
        tasks["numbers"].lag_items = self.lag_items
        latency = Sketch()
        latency.add(2.0)
        return Metrics(tasks, {"out": latency}, commits=self.commits, keyed=self.keyed)

    def lifetimes_ms(self) -> dict[str, float]:
        """Of now."""
        return dict(self.lifetimes)

    def adapt(
        self,
        replicas: Mapping[str, int],
        lifetimes_ms: Mapping[str, float],
        chains: Sequence[Sequence[str]] | None = None,
        pools: Mapping[str, int] | None = None,
        tables: Mapping[str, Spans] | None = None,
    ) -> float | None:
        """Obeys, unless it has a problem."""
        if self.problem is not None:
            raise self.problem
        self.active.update(replicas)
        self.lifetimes.update(lifetimes_ms)
        self.adapted.append(pools)
        return 40.0 if pools else 0.0

    def await_effect(self, timeout_s: float) -> bool:
        """At once."""
        return True

    def pause(self, *sources: str) -> None:
        """Noted."""
        self.paused |= {*sources}

    def resume(self, *sources: str) -> None:
        """Noted."""
        self.paused -= {*sources}

    def set_bound(self, constraint: str, bound: Duration) -> None:
        """As the real one."""
        self.layout = self.layout.with_bound(constraint, milliseconds(bound))

    def log_by_hand(self, entry: Entry) -> None:
        """Noted."""
        self.logged.append(entry)

    def stop(self, timeout: Duration) -> FakeDrained | None:
        """Drains, unless it has a problem."""
        self.stop_timeout_s = seconds(timeout)
        if self.problem is not None:
            raise self.problem
        self.status = Status("stopped", "batch 4")
        self.when_stopped()
        return FakeDrained(4, {"work": 10}, 0.5)


def greeting(flow: str = "primes", run: str = "9f12ab34cd", pid: int = 4711) -> Greeting:
    """Of a flow."""
    return Greeting(penstock="0.1.0", flow=flow, run=run, pid=pid, started_at_s=1000.0)


@contextmanager
def opened(place: Path, job: FakeJob | None = None, hello: Greeting | None = None) -> Iterator[Server]:
    """A flow that answers commands there."""
    server = Server(hello or greeting(), Commands(job or FakeJob()).answer, place)
    try:
        yield server
    finally:
        server.close()


def await_no_threads(within_s: float = 5.0) -> None:
    """Those of callers end by themselves."""
    deadline_s = time.monotonic() + within_s
    while left := [one.name for one in threading.enumerate() if one.name.startswith("penstock-")]:
        assert time.monotonic() < deadline_s, left
        time.sleep(0.01)
