"""What the driver knows from reports: totals over processes that come and go."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.observe.reported import Reported
from penstock.stats.key_load import KeyLoad
from penstock.stats.sketch import Sketch
from penstock.wire.reports import Failure, QueuedChannel

RATES = {"useful_s": 0.1, "window_s": 1.0, "processed": 1, "emitted": 1}


def said(executor: str = "e1", **report: Any) -> bytes:
    return msgspec.json.encode([{"executor": executor, "said": report}])


def totals(
    task: str = "t", replica: int = 0, pid: int = 1, latencies: list[float] | None = None, **more: Any
) -> dict[str, Any]:
    sketch = Sketch()
    for value in latencies or []:
        sketch.add(value)
    counts = {"items_in": 0, "items_out": 0, "envelopes_out": 0, "skipped": 0, "dead_lettered": 0, **more}
    return {"task": task, "replica": replica, "pid": pid, "latency_ms": sketch.to_json(), **counts}


def worker(*args: Any, executor: str = "e1", **more: Any) -> bytes:
    return said(executor, worker=totals(*args, **more))


def totals_of(reported: Reported, *tasks: str) -> Any:
    return reported.metrics(dict.fromkeys(tasks, 1), dict.fromkeys(tasks, 2))


def test_nothing_heard_yet() -> None:
    metrics = totals_of(Reported(), "t")
    assert (metrics.tasks["t"].active, metrics.tasks["t"].pool, metrics.tasks["t"].items_in) == (1, 2, 0)
    assert metrics.latency == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from(["e1", "e2"]), st.integers(1, 3), st.integers(0, 50)
        ),
        max_size=30,
    )
)
def test_the_latest_totals_of_every_process_add_up(reports: list[tuple[str, str, int, int]]) -> None:
    """Totals are of the process, so a later report replaces an earlier one; numbers recur on other hosts."""
    reported = Reported()
    latest: dict[tuple[str, str, int], int] = {}
    for task, executor, pid, count in reports:
        reported.add(worker(task, 0, pid, executor=executor, items_in=count, items_out=2 * count, skipped=1))
        latest[task, executor, pid] = count
    metrics = totals_of(reported, "a", "b")
    for task in "ab":
        counts = [count for (name, _, _), count in latest.items() if name == task]
        assert metrics.tasks[task].items_in == sum(counts)
        assert metrics.tasks[task].items_out == 2 * sum(counts)
        assert metrics.tasks[task].skipped == len(counts)
        assert len(metrics.tasks[task].processes) == len(counts)


def test_what_each_active_replica_sent_by_key_last_adds_up() -> None:
    reported = Reported()

    for replica, count in ((0, 1), (0, 10), (1, 100), (2, 1000)):
        keyed = {"t->u": {"groups": {"7": count}, "slices": [2 * count]}}
        own = {"task": "t", "replica": replica, "rates": RATES, "keyed": keyed}
        reported.add(said(interval=own, channels=[]))
    metrics = reported.metrics({"t": 2}, {"t": 3})
    assert metrics.keyed == {"t->u": KeyLoad({7: 110}, [220])}, "of replica 2 that is not active any more"
    reported.all_gone()
    assert reported.metrics({"t": 2}, {"t": 3}).keyed == {}


def test_the_dead_stay_in_the_totals_but_not_among_the_processes() -> None:
    reported = Reported()
    reported.add(worker(pid=1, items_in=10))
    reported.add(worker(pid=2, items_in=5))
    reported.add(said(gone=1))
    reported.add(said(restarted={"task": "t", "replica": 0, "how": "exit 9"}))
    task = totals_of(reported, "t").tasks["t"]
    assert (task.items_in, task.processes, task.restarts) == (15, [2], 1)


comings = st.tuples(
    st.sampled_from(["e1", "e2"]), st.integers(1, 3), st.sampled_from("ab"), st.integers(0, 50)
)
goings = st.tuples(st.sampled_from(["e1", "e2"]), st.integers(1, 3))


@given(st.lists(comings | goings, max_size=40))
def test_totals_outlast_their_processes(events: list[Any]) -> None:
    """A number may be used again after its process is gone, and at the same time on another executor."""
    reported = Reported()
    living: dict[tuple[str, int], dict[str, int]] = {}
    past = {"a": 0, "b": 0}
    lives: Counter[tuple[str, int]] = Counter()
    for executor, pid, *report in events:
        if report:
            task, count = report
            told = {
                "executor": executor,
                "items_in": count,
                "sent": {"s": count},
                "born_ns": lives[executor, pid],
            }
            reported.add(worker(task, 0, pid, [1.0] * count, **told))
            living.setdefault((executor, pid), {})[task] = count
        else:
            reported.add(said(executor, gone=pid))
            lives[executor, pid] += 1
            for task, count in living.pop((executor, pid), {}).items():
                past[task] += count
    metrics = totals_of(reported, "a", "b")
    for task in "ab":
        of_living = {who: counts[task] for who, counts in living.items() if task in counts}
        count = past[task] + sum(of_living.values())
        assert metrics.tasks[task].items_in == count
        assert sorted(metrics.tasks[task].processes) == sorted(pid for _, pid in of_living)
        assert metrics.latency.get(task, Sketch()).count == count
    sent = reported.backlog({"s": "c"}).get("c", 0)
    assert sent == metrics.tasks["a"].items_in + metrics.tasks["b"].items_in


def test_gone_is_a_process_of_one_executor() -> None:
    reported = Reported()
    for executor, count in (("e1", 10), ("e2", 20)):
        reported.add(worker(pid=7, executor=executor, items_in=count))
    reported.add(said("e1", gone=7))
    assert totals_of(reported, "t").tasks["t"].processes == [7], "the other one lives on"
    reported.add(worker(pid=7, executor="e2", items_in=25))
    assert totals_of(reported, "t").tasks["t"].items_in == 35
    reported.add(said("e2", gone=7))
    task = totals_of(reported, "t").tasks["t"]
    assert (task.items_in, task.processes) == (35, [])


def test_a_last_report_that_comes_after_the_news_of_the_end_counts_once() -> None:
    """The final report and the end of a process come by different channels."""
    reported = Reported()
    reported.add(worker(pid=1, items_in=10, born_ns=5))
    reported.add(said(gone=1))
    reported.add(worker(pid=1, items_in=12, born_ns=5))
    task = totals_of(reported, "t").tasks["t"]
    assert (task.items_in, task.processes) == (12, [])


def test_a_report_that_was_overtaken_changes_nothing() -> None:
    reported = Reported()
    reported.add(worker(pid=1, items_in=12, made=2))
    reported.add(worker(pid=1, items_in=10, made=1))
    assert totals_of(reported, "t").tasks["t"].items_in == 12


def test_somebody_who_never_reported_may_go() -> None:
    reported = Reported()
    reported.add(said(gone=7))
    assert totals_of(reported, "t").tasks["t"].items_in == 0


def test_tasks_chained_to_a_process_go_with_it() -> None:
    """One that was let go and hosted again reports with another serial: both count."""
    reported = Reported()
    chained = [
        {"worker": totals("b", 0, 1, items_in=count, serial=serial)} for serial, count in ((1, 30), (2, 4))
    ]
    reported.add(said(worker=totals("a", 0, 1, items_in=10), chained=chained))
    for living in ([1], []):
        tasks = totals_of(reported, "a", "b").tasks
        assert {name: task.items_in for name, task in tasks.items()} == {"a": 10, "b": 34}
        assert {name: task.processes for name, task in tasks.items()} == {"a": living, "b": living}
        reported.add(said(gone=1))


def test_memory_does_not_grow_with_the_processes_that_were() -> None:
    reported = Reported()
    for number in range(10_000):
        executor, pid, task = f"e{number % 7}", number % 1000, "ab"[number % 2]
        reported.add(
            worker(
                task,
                number % 5,
                pid,
                [2.0],
                executor=executor,
                items_in=3,
                sent={f"{task}->k": 3},
                skipped=1,
                born_ns=number,
            )
        )
        reported.add(said(executor, gone=pid))
        reported.add(said(executor, restarted={"task": task, "replica": 0, "how": "exit 9"}))
    assert reported._living == {}
    assert len(reported._leaving) <= 100
    assert set(reported._past) == {"a", "b"}
    metrics = totals_of(reported, "a", "b")
    for task, past in metrics.tasks.items():
        assert (past.items_in, past.skipped, past.restarts, past.processes) == (15_000, 5000, 5000, [])
        assert metrics.latency[task].count == 5000
    assert reported.backlog({"a->k": "k", "b->k": "k"})["k"] == 30_000


def test_looking_does_not_change_what_is_known() -> None:
    """Living processes are added to what is past for the answer alone."""
    reported = Reported()
    reported.add(worker(pid=1, items_in=1, latencies=[1.0], sent={"t->u": 5}))
    reported.add(said(gone=1))
    reported.add(worker(pid=2, items_in=2, latencies=[2.0], sent={"t->u": 6}))
    for _ in range(3):
        metrics = totals_of(reported, "t")
        assert (metrics.tasks["t"].items_in, metrics.latency["t"].count) == (3, 2)
        assert reported.backlog({"t->u": "u"}) == {"t": 0, "u": 11}


def test_the_first_failure_is_the_one_to_tell() -> None:
    reported = Reported()
    assert reported.failure is None
    for problem in ("first", "second"):
        reported.add(said(failed={"task": "t", "replica": 0, "problem": problem}))
    assert reported.failure == Failure("t", 0, "first")


@pytest.mark.parametrize("may_pass", [True, False])
def test_a_failure_that_may_pass_is_forgotten_when_it_is_started_again(may_pass: bool) -> None:
    reported = Reported()
    reported.add(said(failed={"task": "t", "replica": 0, "problem": "no room", "may_pass": may_pass}))
    reported.all_gone()
    assert reported.failure == (None if may_pass else Failure("t", 0, "no room"))


def test_latencies_of_all_replicas_of_a_sink_are_put_together() -> None:
    reported = Reported()
    reported.add(worker("sink", 0, 1, [1.0, 2.0]))
    reported.add(worker("sink", 1, 2, [6.0]))
    reported.add(worker("other", 0, 3))
    latency = totals_of(reported, "sink", "other").latency
    assert set(latency) == {"sink"}
    assert latency["sink"].count == 3
    assert latency["sink"].mean == 3.0


def test_backlog_is_what_was_sent_and_not_processed() -> None:
    reported = Reported()
    reported.add(worker("source", 0, 1, items_in=100, sent={"source->t": 100, "source->u": 40}))
    reported.add(worker("t", 0, 2, items_in=70))
    reported.add(worker("t", 1, 3, items_in=10))
    reported.add(worker("u", 0, 4, items_in=41))
    assert reported.backlog({"source->t": "t", "source->u": "u"}) == {"source": 0, "t": 20, "u": 0}


def interval(executor: str, replica: int, service_ms: float, count: int = 1) -> bytes:
    """A second of a replica, and of the channel from replica 0 of the task before; a tenth is timed."""
    processed = 10 * count
    rates = {"useful_s": processed * service_ms / 1000, "window_s": 1.0, "processed": processed, "emitted": 4}
    service = {"count": count, "center": service_ms, "squares": 0.0}
    times = {"latency_ms": {"count": count, "center": 10 * service_ms, "squares": 0.0}}
    channel = {"stream": "s->t", "sender": 0, "receiver": replica, "times": times}
    own = {"task": "t", "replica": replica, "rates": rates, "service_ms": service}
    return said(executor, interval=own, channels=[channel])


def lag(replica: int, items: int | None) -> bytes:
    return said(interval={"task": "s", "replica": replica, "rates": RATES, "lag_items": items}, channels=[])


def test_the_lag_of_a_source_is_that_of_all_its_replicas_of_now() -> None:
    reported = Reported()
    seen = []
    for replica, items in [(0, 30), (1, 12), (1, 7), (0, None), (0, 1)]:
        reported.add(lag(replica, items))
        seen.append(reported.metrics({"s": 2, "t": 1}, {"s": 2, "t": 1}).tasks["s"].lag_items)
    assert seen == [None, 42, 37, None, 8]
    assert reported.metrics({"s": 1}, {"s": 2}).tasks["s"].lag_items == 1
    assert reported.metrics({"s": 2, "t": 1}, {"s": 2, "t": 1}).tasks["t"].lag_items is None
    reported.all_gone()
    assert reported.metrics({"s": 2}, {"s": 2}).tasks["s"].lag_items is None


def test_a_window_is_taken_once() -> None:
    reported = Reported()
    window = reported.window()
    for _ in range(2):
        reported.add(interval("e1", 1, 3.0))
    task = window.take().summary.tasks["t"]
    assert (task.processed.sum, task.service_ms.count) == (20, 1)
    assert window.take().summary.tasks == {}


def test_everybody_who_looks_has_a_window() -> None:
    reported = Reported()
    early = reported.window()
    reported.add(interval("e1", 0, 3.0))
    late = reported.window()
    reported.add(interval("e1", 0, 5.0))
    assert early.take().summary.tasks["t"].service_ms.mean == 4.0
    assert late.take().summary.tasks["t"].service_ms.mean == 5.0


def test_replicas_of_all_executors_count_once_each() -> None:
    """One second of a replica has three samples and the other one: they are put together before the mean."""
    reported = Reported()
    window = reported.window()
    reported.add(interval("e1", 0, 1.0, count=3))
    reported.add(interval("e1", 0, 5.0, count=1))
    reported.add(interval("e2", 1, 8.0))
    summary = window.take().summary
    assert summary.tasks["t"].service_ms.mean == 5.0
    assert summary.tasks["t"].workers == {0: "e1", 1: "e2"}
    assert summary.streams["s->t"].latency_ms.mean == 50.0


def test_a_replica_that_moves_counts_where_it_is_now() -> None:
    reported = Reported()
    window = reported.window()
    reported.add(interval("e1", 0, 1.0))
    reported.add(interval("e2", 0, 3.0))
    task = window.take().summary.tasks["t"]
    assert (task.service_ms.count, task.service_ms.mean, task.workers) == (1, 2.0, {0: "e2"})


def test_latencies_of_sequences_are_put_together_and_taken_once() -> None:
    reported = Reported()
    window = reported.window()
    own = {"task": "t", "rates": {"useful_s": 0.0, "window_s": 1.0, "processed": 0, "emitted": 0}}
    for replica, value_ms in enumerate((2.0, 4.0)):
        sketch = Sketch()
        sketch.add(value_ms)
        passed = {"fast": sketch.to_json()}
        reported.add(said("e1", interval={**own, "replica": replica}, passed_ms=passed))
    found = window.take().passed_ms["fast"]
    assert (found.count, found.mean) == (2, 3.0)
    assert window.take().passed_ms == {}


def test_what_waits_is_that_of_the_last_report_of_a_living_process() -> None:
    reported = Reported()
    first, last = [0, 1, 3, 30, 900, 5.5], [0, 1, 1, 10, 300, 1.5]
    for queue in ([first], [last]):
        reported.add(said(worker=totals("t", 2, 1), queue=queue))
    reported.add(said(worker=totals("t", 0, 2), queue=[]))
    reported.add(said(worker=totals("t", 1, 3)))
    assert reported.waiting() == {("t", 2): [QueuedChannel(0, 1, 1, 10, 300, 1.5)], ("t", 0): []}
    reported.add(said(gone=1))
    assert reported.waiting() == {("t", 0): []}, "of replica 1 nobody knows, and replica 2 is gone"
    reported.all_gone()
    assert reported.waiting() == {}


def test_a_successor_that_reported_first_keeps_its_queue() -> None:
    reported = Reported()
    reported.add(said(worker=totals("t", 0, 1), queue=[]))
    reported.add(said(worker=totals("t", 0, 2), queue=[[0, 0, 1, 1, 30, 1.0]]))
    reported.add(said(gone=1))
    assert reported.waiting() == {("t", 0): [QueuedChannel(0, 0, 1, 1, 30, 1.0)]}
