"""What a driver answers, without a socket."""

import io

import pytest
from rich.console import Console

from penstock.cli.live_view import live_view
from penstock.flow.errors import FlowError, JobFailed
from penstock.operate.commands import Commands, rates
from penstock.operate.protocol import AskStatus, Changed, FlowNow, Greeting, Refused, Set, Stop, Stopped
from tests.operate.fake_job import FakeControl, FakeJob


def refused(job: FakeJob, wanted: Set) -> str:
    answer = Commands(job).answer(wanted)
    assert isinstance(answer, Refused)
    assert not answer.failed
    return answer.why


def test_status_tells_tasks_streams_bounds_and_latency() -> None:
    job = FakeJob()
    job.recent_progress = [
        {"time_s": at_s, "tasks": {"work": {"items_in": items}}}
        for at_s, items in [(0, 0), (9, 90), (10, 140)]
    ]
    now = Commands(job).answer(AskStatus())
    assert isinstance(now, FlowNow)
    work = now.tasks[1]
    assert (work.name, work.replicas, work.pool, work.lowest, work.highest, work.per_s) == (
        *("work", 2, 8, 1, 20),
        50.0,
    )
    assert now.tasks[0].per_s is None
    assert now.lifetimes_ms == {"numbers->work": 5.0, "work->out": 0.0}
    assert [(one.name, one.bound_ms) for one in now.constraints] == [("quick", 20.0)]
    assert now.latency["out"].mean_ms == 2.0
    assert now.control is None


def test_status_tells_how_far_a_source_is_behind() -> None:
    job = FakeJob()
    greeting = Greeting(penstock="0", flow="primes", run="r", pid=1, started_at_s=0.0)
    for lag_items in (None, 12345):
        job.lag_items = lag_items
        now = Commands(job).answer(AskStatus())
        assert isinstance(now, FlowNow)
        assert now.tasks[0].lag_items == lag_items
        console = Console(file=io.StringIO(), width=120)
        console.print(live_view(greeting, now))
        assert isinstance(console.file, io.StringIO)
        shown = console.file.getvalue()
        assert ("behind" in shown) == ("12,345" in shown) == (lag_items is not None)


def test_status_holds_what_the_policy_says() -> None:
    job = FakeJob()
    job.control = FakeControl()
    now = Commands(job).answer(AskStatus())
    assert isinstance(now, FlowNow)
    assert now.control is not None
    assert now.control.policy == "nephele"


def test_everything_is_set_at_once_and_told() -> None:
    job = FakeJob()
    changed = Commands(job).answer(
        Set(replicas={"work": 5}, lifetimes_ms={"numbers->work": 12.0}, bounds_ms={"quick": 30.0})
    )
    assert changed == Changed(
        changes=[
            "work: 2 -> 5 replicas",
            "numbers->work: lifetime 5 ms -> 12 ms",
            "quick: bound 20 ms -> 30 ms",
        ]
    )
    assert (job.active["work"], job.lifetimes["numbers->work"]) == (5, 12.0)
    assert job.layout.graph.constraints[0].latency_ms == 30.0
    assert job.adapted == [None]


def test_a_pool_that_is_too_small_grows_and_the_gap_is_told() -> None:
    job = FakeJob()
    changed = Commands(job).answer(Set(replicas={"work": 9}))
    assert isinstance(changed, Changed)
    assert changed.gap_ms == 40.0
    assert job.adapted == [{"work": 9}]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (
            Set(replicas={"work": 21}),
            '21 replicas of task "work" of flow "primes" cannot be set: it was declared with 1 to 20',
        ),
        (
            Set(replicas={"numbers": 2}),
            '2 replicas of source "numbers" of flow "primes" cannot be set: it was declared with always 1',
        ),
        (Set(replicas={"wrok": 2}), 'has no task "wrok"; its tasks are numbers, work, out'),
        (Set(lifetimes_ms={"a->b": 2}), 'has no stream "a->b"; its streams are'),
        (Set(lifetimes_ms={"numbers->work": -1}), 'a lifetime of -1 ms for stream "numbers->work" is none'),
        (Set(bounds_ms={"slow": 2}), 'has no constraint "slow"; its constraints are quick'),
        (Set(bounds_ms={"quick": 0}), "cannot be kept; give one above 0 ms"),
        (Set(pause=["work"]), 'task "work" of flow "primes" is no source; its sources are numbers'),
        (Set(pause=["numbers"], resume=["numbers"]), "cannot be paused and resumed at once"),
        (Set(policy="recommend"), 'flow "primes" runs without a policy; start it with one'),
    ],
)
def test_what_cannot_be_set_is_refused_in_words(wanted: Set, why: str) -> None:
    assert why in refused(FakeJob(), wanted)


def test_one_wrong_name_leaves_everything_as_it_was() -> None:
    job = FakeJob()
    refused(job, Set(replicas={"work": 5}, bounds_ms={"slow": 2}))
    assert job.active["work"] == 2
    job.control, job.problem = FakeControl(), FlowError("no slots")
    assert refused(job, Set(replicas={"work": 5}, policy="recommend")) == "no slots"
    assert job.control.applies, "switched back"


def test_a_policy_is_switched_and_one_that_is_on_may_change_things_again() -> None:
    job = FakeJob()
    job.control = FakeControl()
    changed = Commands(job).answer(Set(replicas={"work": 3}))
    assert isinstance(changed, Changed)
    assert changed.note is not None
    assert "may change this again; set it to recommend, and this stays" in changed.note
    changed = Commands(job).answer(Set(replicas={"work": 4}, policy="recommend"))
    assert isinstance(changed, Changed)
    assert (changed.note, changed.changes[-1]) == (None, "policy: on -> recommend")
    assert not job.control.applies


def test_a_source_is_paused_and_resumed() -> None:
    job = FakeJob()
    assert Commands(job).answer(Set(pause=["numbers"])) == Changed(changes=["numbers: paused"])
    now = Commands(job).answer(AskStatus())
    assert isinstance(now, FlowNow)
    assert [task.name for task in now.tasks if task.paused] == ["numbers"]
    assert Commands(job).answer(Set(resume=["numbers"])) == Changed(changes=["numbers: reads on"])
    assert not job.paused


def test_stop_drains_within_the_time_given() -> None:
    job = FakeJob()
    assert Commands(job).answer(Stop(timeout_s=7)) == Stopped(
        words="drained: ten items", commit=4, items={"work": 10}, took_s=0.5
    )
    assert job.stop_timeout_s == 7


def test_a_flow_that_fails_is_no_fault_of_the_request() -> None:
    job = FakeJob()
    job.problem = JobFailed("it was not drained")
    assert Commands(job).answer(Stop()) == Refused(why="it was not drained", failed=True)


def test_rates_need_two_entries_and_totals_that_grow() -> None:
    def entry(at_s: float, items: int) -> dict[str, object]:
        return {"time_s": at_s, "tasks": {"t": {"items_in": items}}}

    assert rates([], 5.0) == {}
    assert rates([entry(1, 10)], 5.0) == {}
    assert rates([entry(1, 10), entry(1, 10)], 5.0) == {}
    assert rates([entry(1, 10), entry(3, 20)], 5.0) == {"t": 5.0}
    assert rates([entry(1, 30), entry(3, 20)], 5.0) == {}
