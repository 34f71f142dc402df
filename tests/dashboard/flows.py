"""A recording made by hand, and a flow that runs without Spark, as the dashboard sees them."""

from pathlib import Path

from msgspec.structs import replace

from penstock.control.decision_log import Entry
from penstock.control.engine import Effect
from penstock.control.events import Event, Stopped
from penstock.control.loop import Cycle
from penstock.control.recording import Recorder
from penstock.observe.reported import Reported
from penstock.observe.view import View
from penstock.policy.decision import Reason, Refusal
from penstock.stats.snapshot import CommitStats, ExecutorStats, KeyGroupStats, QueueStats, Snapshot, TaskStats
from penstock.wire.orders import Switches
from penstock.wire.routes import routes
from tests.control.headers import header
from tests.operate.fake_job import FakeControl, FakeJob
from tests.report.recordings import decision, snapshot

BEGAN_S = 1767225600.0
NASTY = "<script>alert(1)</script>"
EVENTS = (
    Event(at_s=BEGAN_S + 4, kind="commit", text="batch 0 is committed"),
    Event(at_s=BEGAN_S + 9, kind="failure", text=f"{NASTY}: 2 items skipped"),
    Event(
        at_s=BEGAN_S + 14,
        kind="restart",
        text="started again after 1.5 s, 1,200 items replayed",
        detail="item 'secret' is bad",
    ),
)


def interval(number: int) -> Snapshot:
    """Replicas climb, the third interval breaks its bound; the task has a nasty name in no chain."""
    seen = snapshot(
        rate=100.0 + number,
        arrived=500.0 + 5 * number,
        wait_ms=4.0 + 2 * number,
        replicas=1 + number,
        busy=0.5 + 0.1 * number,
        p95_ms=11.5 + number,
    )
    tasks = dict(seen.tasks)
    tasks["source"] = replace(tasks["source"], lag_ms=30.0 + number, lag_items=7.0, worker=["0"])
    tasks["work"] = replace(
        tasks["work"],
        backlog_total=40.0 + number,
        worker=["0"] * (1 + number),
        key_groups=[KeyGroupStats(group=77, processed=123.0)],
        state_bytes=3_000_000.0 + number,
    )
    nasty = TaskStats(kind="sink", parallelism=1, processed_total=2.0)
    streams = [replace(seen.streams[0], queue=QueueStats(items=3)), seen.streams[1]]
    return replace(
        seen,
        tasks={**tasks, NASTY: nasty},
        streams=[*streams, replace(seen.streams[1], receiver=NASTY)],
        chains=[["work", "sink"]],
        executors={
            "0": ExecutorStats(
                cores=2, cores_used=1.25, java_cores_used=0.314, slots_used=5, memory_bytes=1_234 * 2**20
            ),
            "1": ExecutorStats(cores=2, slots_used=0),
        },
        commits=CommitStats(
            epoch=5 * (number + 1), age_s=0.25, took_ms=80.0 + number, committed=5, void=number // 2
        ),
    )


def recorded(path: Path, intervals: int = 4) -> Path:
    """So many intervals of 5 s, each with its decision; one was made by hand, one was held back."""
    with Recorder(path, header(flow="by-hand", policy="nephele", started_at_s=BEGAN_S)) as recorder:
        for number in range(intervals):
            at_s = BEGAN_S + 5 * (number + 1)
            still_ms = 210.0 if number == 2 else None
            recorder.write_snapshot(interval(number), at_s=at_s, stood_still_ms=still_ms)
            made = decision(
                2 + number,
                policy="nephele",
                reasons=[Reason(rule="rebalance", task="work", why=f"queue of {NASTY} grows")],
                refused=[Refusal(guard="cool_down", task="work", why="too soon")] if number == 1 else [],
            )
            effect = Effect(after_ms=42.0, problem="item 'secret' is bad" if number == 3 else None)
            recorder.write_decision(Entry(number=number, at_s=at_s, decision=made, effect=effect))
        for event in EVENTS:
            recorder.write_event(event)
    return path


class WatchedControl(FakeControl):
    """A policy that has decided once."""

    def __init__(self) -> None:
        super().__init__()
        self.made = decision(3, reasons=[Reason(rule="rebalance", task="work", why="queues grow")])

    def cycles(self) -> list[Cycle]:
        """One turn."""
        seen = snapshot(replicas=2)
        return [Cycle(number=0, at_s=BEGAN_S, snapshot=seen, decision=self.made)]


class WatchedJob(FakeJob):
    """A flow that runs as the dashboard sees it: nothing is measured, everything can be set."""

    control: WatchedControl | None

    def __init__(self) -> None:
        super().__init__()
        self.control = WatchedControl()
        self.recent_progress = [{"time_s": BEGAN_S, "batch": 3, "tasks": {}}]
        self.stopped: list[Stopped] = []

    def view(self, *, with_cpu: bool = True) -> View:
        """Of the flow as it is set now."""
        del with_cpu
        return View(Reported(), lambda: (self.layout, self._switches()), None)

    def _switches(self) -> Switches:
        return Switches(
            routes=routes(self.layout),
            active=dict(self.active),
            lifetime_ms=dict(self.lifetimes),
            sampling=0.1,
            measure_every_s=1.0,
        )

    def decisions(self) -> list[Entry]:
        """The one of the policy."""
        made = [] if self.control is None else [self.control.made]
        return [Entry(number=0, at_s=BEGAN_S, decision=one) for one in made]

    def by_hand(self) -> list[Entry]:
        """What was set."""
        return list(self.logged)

    def outages(self) -> list[Stopped]:
        """When it did not run."""
        return self.stopped
