"""Windows: several snapshots as one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.window import Window, gather, merge
from penstock.stats.snapshot import InstanceStats, Snapshot, StreamStats, TaskStats


def snapshot(interval_s: float = 5.0, replicas: int = 1, **fields: object) -> Snapshot:
    task = TaskStats(kind="task", parallelism=replicas, elastic=True, **fields)  # type: ignore[arg-type]
    return Snapshot(interval_s=interval_s, tasks={"t": task})


def test_counts_add_up_and_levels_are_averaged() -> None:
    first = snapshot(
        5, processed_total=10.0, useful_s=1.0, utilization=0.2, backlog_total=4.0, service_ms=1.0
    )
    then = snapshot(
        15, processed_total=30.0, useful_s=2.0, utilization=0.6, backlog_total=9.0, service_ms=3.0
    )
    merged = merge(first, then)
    task = merged.tasks["t"]
    assert merged.interval_s == 20
    assert (task.processed_total, task.useful_s, task.backlog_total) == (40.0, 3.0, 9.0)
    assert task.utilization == pytest.approx(0.5)
    assert task.service_ms == pytest.approx(2.5)


def test_what_is_unknown_in_one_part_is_unknown_in_the_whole() -> None:
    merged = merge(snapshot(processed_total=10.0, utilization=0.5), snapshot()).tasks["t"]
    assert merged.processed_total is None
    assert merged.utilization is None


def test_an_interval_without_samples_does_not_hide_the_others() -> None:
    merged = merge(snapshot(processed_total=10.0, service_ms=2.0), snapshot(processed_total=0.0)).tasks["t"]
    assert merged.service_ms == 2.0


def test_instances_add_up_one_by_one() -> None:
    one = snapshot(instances=[InstanceStats(useful_s=1.0, processed=2.0, emitted=None)])
    merged = merge(one, one).tasks["t"]
    assert merged.instances == [InstanceStats(useful_s=2.0, processed=4.0, emitted=None)]
    assert merge(one, snapshot()).tasks["t"].instances is None


def test_what_was_put_into_a_stream_adds_up() -> None:
    def sent(count: float | None) -> Snapshot:
        stream = StreamStats(origin="t", receiver="t", emitted_total=count, latency_ms=count)
        return msgspec.structs.replace(snapshot(), streams=[stream])

    assert merge(sent(2.0), sent(3.0)).streams[0].emitted_total == 5.0
    assert merge(sent(2.0), sent(3.0)).streams[0].latency_ms == 3.0
    assert merge(sent(None), sent(3.0)).streams[0].emitted_total is None


def test_gathers_until_the_length_is_reached() -> None:
    window, full = gather(Window(), snapshot(5), 10)
    assert full is None
    window, full = gather(window, snapshot(5), 10)
    assert full is not None
    assert full.interval_s == 10
    assert window == Window()


def test_another_parallelism_begins_a_new_window() -> None:
    window, _ = gather(Window(), snapshot(5, replicas=1), 10)
    _, full = gather(window, snapshot(5, replicas=2), 10)
    assert full is None


measured = st.builds(
    snapshot,
    st.floats(0.1, 60),
    processed_total=st.floats(0, 1e6) | st.none(),
    emitted_total=st.floats(0, 1e6) | st.none(),
    useful_s=st.floats(0, 60),
    utilization=st.floats(0, 1),
)


@given(measured, measured, measured)
def test_merging_is_associative(a: Snapshot, b: Snapshot, c: Snapshot) -> None:
    left, right = merge(merge(a, b), c), merge(a, merge(b, c))
    assert left.interval_s == pytest.approx(right.interval_s)
    one, other = msgspec.structs.asdict(left.tasks["t"]), msgspec.structs.asdict(right.tasks["t"])
    for name in ("processed_total", "emitted_total", "useful_s", "utilization"):
        assert one[name] == (None if other[name] is None else pytest.approx(other[name]))
