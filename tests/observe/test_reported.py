"""The ledger of the driver: totals over processes that come and go."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.observe.reported import Failure, Ledger
from penstock.stats.sketch import Sketch


def said(executor: str = "e1", **report: Any) -> bytes:
    return msgspec.json.encode([{"executor": executor, "said": report}])


def worker(
    task: str = "t", replica: int = 0, pid: int = 1, latencies: list[float] | None = None, **more: Any
) -> bytes:
    sketch = Sketch()
    for value in latencies or []:
        sketch.add(value)
    totals = {"items_in": 0, "items_out": 0, "envelopes_out": 0, "skipped": 0, "dead_lettered": 0, **more}
    return said(
        worker={"task": task, "replica": replica, "pid": pid, "latency_ms": sketch.to_json(), **totals}
    )


def totals_of(ledger: Ledger, *tasks: str) -> Any:
    return ledger.metrics(dict.fromkeys(tasks, 1), dict.fromkeys(tasks, 2))


def test_nothing_heard_yet() -> None:
    metrics = totals_of(Ledger(), "t")
    assert (metrics.tasks["t"].active, metrics.tasks["t"].pool, metrics.tasks["t"].items_in) == (1, 2, 0)
    assert metrics.latency == {}


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 3), st.integers(0, 50)),
        max_size=30,
    )
)
def test_the_latest_totals_of_every_process_add_up(reports: list[tuple[str, int, int, int]]) -> None:
    """Totals are of the process, so a later report replaces an earlier one; numbers recur on other hosts."""
    ledger = Ledger()
    latest: dict[tuple[str, int, int], int] = {}
    for task, replica, pid, count in reports:
        ledger.add(worker(task, replica, pid, items_in=count, items_out=2 * count, skipped=1))
        latest[task, replica, pid] = count
    metrics = totals_of(ledger, "a", "b")
    for task in "ab":
        counts = [count for (name, _, _), count in latest.items() if name == task]
        assert metrics.tasks[task].items_in == sum(counts)
        assert metrics.tasks[task].items_out == 2 * sum(counts)
        assert metrics.tasks[task].skipped == len(counts)
        assert len(metrics.tasks[task].processes) == len(counts)


def test_the_dead_stay_in_the_totals_but_not_among_the_processes() -> None:
    ledger = Ledger()
    ledger.add(worker(pid=1, items_in=10))
    ledger.add(worker(pid=2, items_in=5))
    ledger.add(said(gone=1))
    ledger.add(said(restarted={"task": "t", "replica": 0, "how": "exit 9"}))
    task = totals_of(ledger, "t").tasks["t"]
    assert (task.items_in, task.processes, task.restarts) == (15, [2], 1)


def test_the_first_failure_is_the_one_to_tell() -> None:
    ledger = Ledger()
    assert ledger.failure is None
    for problem in ("first", "second"):
        ledger.add(said(failed={"task": "t", "replica": 0, "problem": problem}))
    assert ledger.failure == Failure("t", 0, "first")


def test_latencies_of_all_replicas_of_a_sink_are_put_together() -> None:
    ledger = Ledger()
    ledger.add(worker("sink", 0, 1, [1.0, 2.0]))
    ledger.add(worker("sink", 1, 2, [6.0]))
    ledger.add(worker("other", 0, 3))
    latency = totals_of(ledger, "sink", "other").latency
    assert set(latency) == {"sink"}
    assert latency["sink"].count == 3
    assert latency["sink"].mean == 3.0


def test_backlog_is_what_was_sent_and_not_processed() -> None:
    ledger = Ledger()
    ledger.add(worker("source", 0, 1, items_in=100, sent={"source->t": 100, "source->u": 40}))
    ledger.add(worker("t", 0, 2, items_in=70))
    ledger.add(worker("t", 1, 3, items_in=10))
    ledger.add(worker("u", 0, 4, items_in=41))
    assert ledger.backlog({"source->t": "t", "source->u": "u"}) == {"source": 0, "t": 20, "u": 0}


def interval(executor: str, replica: int, service_ms: float, count: int = 1) -> bytes:
    """A second of a replica, and of the channel from replica 0 of the task before; a tenth is timed."""
    processed = 10 * count
    rates = {"useful_s": processed * service_ms / 1000, "window_s": 1.0, "processed": processed, "emitted": 4}
    service = {"count": count, "center": service_ms, "squares": 0.0}
    times = {"latency_ms": {"count": count, "center": 10 * service_ms, "squares": 0.0}}
    channel = {"stream": "s->t", "sender": 0, "receiver": replica, "times": times}
    own = {"task": "t", "replica": replica, "rates": rates, "service_ms": service}
    return said(executor, interval=own, channels=[channel])


def test_a_window_is_taken_once() -> None:
    ledger = Ledger()
    window = ledger.window()
    for _ in range(2):
        ledger.add(interval("e1", 1, 3.0))
    task = window.take_summary().tasks["t"]
    assert (task.processed.sum, task.service_ms.count) == (20, 1)
    assert window.take_summary().tasks == {}


def test_everybody_who_looks_has_a_window() -> None:
    ledger = Ledger()
    early = ledger.window()
    ledger.add(interval("e1", 0, 3.0))
    late = ledger.window()
    ledger.add(interval("e1", 0, 5.0))
    assert early.take_summary().tasks["t"].service_ms.mean == 4.0
    assert late.take_summary().tasks["t"].service_ms.mean == 5.0


def test_replicas_of_all_executors_count_once_each() -> None:
    """One second of a replica has three samples and the other one: they are put together before the mean."""
    ledger = Ledger()
    window = ledger.window()
    ledger.add(interval("e1", 0, 1.0, count=3))
    ledger.add(interval("e1", 0, 5.0, count=1))
    ledger.add(interval("e2", 1, 8.0))
    summary = window.take_summary()
    assert summary.tasks["t"].service_ms.mean == 5.0
    assert summary.tasks["t"].workers == {0: "e1", 1: "e2"}
    assert summary.streams["s->t"].latency_ms.mean == 50.0


def test_a_replica_that_moves_counts_where_it_is_now() -> None:
    ledger = Ledger()
    window = ledger.window()
    ledger.add(interval("e1", 0, 1.0))
    ledger.add(interval("e2", 0, 3.0))
    task = window.take_summary().tasks["t"]
    assert (task.service_ms.count, task.service_ms.mean, task.workers) == (1, 2.0, {0: "e2"})
