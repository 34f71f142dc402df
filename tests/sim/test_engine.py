"""The engine as a whole: nothing is lost, steps do not matter, theory holds, settings take effect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sim.distributions import Deterministic, Exponential, Gamma
from penstock.sim.engine import SimulatedEngine
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, Keys, StreamModel, TaskModel
from penstock.sim.workloads import wordcount
from penstock.stats.snapshot import check_snapshot, encode_snapshot
from tests.sim.flows import decision, observed, pipeline

COSTS = Costs(20e-6, 1e-6, 20e-6, 1e-6, 0.5e-3)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    replicas=st.lists(st.integers(1, 6), min_size=4, max_size=4),
    lifetimes_ms=st.lists(st.sampled_from([0.0, 1.0, 7.5, 60.0]), min_size=4, max_size=4),
    limit=st.sampled_from([None, 1, 4]),
    rate=st.sampled_from([20.0, 300.0]),
)
def test_every_item_is_delivered_or_still_inside(
    seed: int, replicas: list[int], lifetimes_ms: list[float], limit: int | None, rate: float
) -> None:
    flow = pipeline(
        rate=rate, limit_items=limit, costs=COSTS, lifetime_ms=5.0, service=Gamma(0.8), step_s=0.7
    )
    engine = SimulatedEngine(flow, seed, seconds=20.0)
    emitted = delivered = 0.0
    for count, lifetime_ms in zip(replicas, lifetimes_ms, strict=True):
        observed(engine)
        assert engine.last is not None
        emitted += engine.last.emitted
        delivered += engine.last.delivered
        assert emitted == delivered + engine.items_inside
        lifetimes = {"source->work": lifetime_ms, "work->sink": lifetime_ms}
        engine.apply(decision(parallelism={"work": count}, batch_lifetime_ms=lifetimes))
    assert engine.observe() is None


@settings(max_examples=20)
@given(
    steps=st.tuples(st.floats(0.05, 1.0), st.floats(0.05, 1.0)),
    lifetime_ms=st.sampled_from([0.0, 3.0, 40.0]),
    limit=st.sampled_from([None, 3]),
    replicas=st.integers(1, 5),
)
def test_the_length_of_a_step_changes_nothing(
    steps: tuple[float, float], lifetime_ms: float, limit: int | None, replicas: int
) -> None:
    costs = Costs(receive_envelope_s=1e-4, receive_item_s=1e-5, transport_s=1e-3)
    seen = []
    for step_s in steps:
        flow = pipeline(
            rate=211.0,
            replicas=replicas,
            service_s=0.004,
            gaps=Deterministic(),
            lifetime_ms=lifetime_ms,
            limit_items=limit,
            costs=costs,
            step_s=step_s,
        )
        seen.append(observed(SimulatedEngine(flow, seconds=5.0)))
    one, other = seen
    assert one.tasks["work"].processed_total == other.tasks["work"].processed_total
    assert one.tasks["work"].utilization == pytest.approx(other.tasks["work"].utilization, rel=1e-9)
    assert one.tasks["work"].interarrival_cv == pytest.approx(other.tasks["work"].interarrival_cv, rel=1e-6)
    # An envelope in service when the interval ends is counted when it is finished; a step that ends while it
    # was filled cuts it in two, and then its first items are counted with this interval.
    for name in ("source->work", "work->sink"):
        assert one.stream(name).latency_ms == pytest.approx(other.stream(name).latency_ms, rel=2e-3)
        assert one.stream(name).output_batch_ms == pytest.approx(
            other.stream(name).output_batch_ms, rel=2e-3, abs=1e-9
        )


def test_both_envelope_kernels_give_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = pipeline(rate=5_000.0, sources=16, replicas=16, service_s=1e-3, lifetime_ms=8.0, limit_items=6)
    seen = []
    for many in (1, 10**9):
        monkeypatch.setattr("penstock.sim.stream._MANY_CHANNELS", many)
        seen.append(observed(SimulatedEngine(flow, seed=3, seconds=5.0)))
    first, second = seen
    assert first.stream("source->work").latency_ms == pytest.approx(second.stream("source->work").latency_ms)
    assert first.tasks["work"].processed_total == second.tasks["work"].processed_total


def test_an_m_m_1_queue_waits_as_theory_says() -> None:
    flow = pipeline(rate=70.0, sources=1, replicas=1, service=Exponential(), step_s=100.0)
    flow = replace(flow, interval_s=100.0)
    engine = SimulatedEngine(flow, seed=2, seconds=40_000.0)
    waits, items, busy = 0.0, 0.0, []
    while (snapshot := engine.observe()) is not None:
        task = snapshot.tasks["work"]
        assert task.queue_wait_ms is not None
        assert task.processed_total is not None
        assert task.utilization is not None
        waits += task.queue_wait_ms * task.processed_total
        items += task.processed_total
        busy.append(task.utilization)
    assert waits / items == pytest.approx(10.0 * 0.7 / 0.3, rel=0.02)
    assert np.mean(busy) == pytest.approx(0.7, rel=0.01)


def test_the_same_seed_gives_the_same_run_and_another_a_different_one() -> None:
    flow = pipeline(service=Gamma(0.5))
    texts = [encode_snapshot(observed(SimulatedEngine(flow, seed, seconds=5.0))) for seed in (4, 4, 5)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_snapshots_pass_the_check_of_the_format() -> None:
    engine = SimulatedEngine(pipeline(costs=COSTS, lifetime_ms=4.0), seconds=10.0)
    for _ in range(2):
        check_snapshot(observed(engine))


def test_batching_adds_latency_and_saves_cpu() -> None:
    costs = Costs(send_envelope_s=2e-3, receive_envelope_s=2e-3)
    seen = {}
    for lifetime_ms in (0.0, 200.0):
        flow = pipeline(rate=200.0, replicas=2, service_s=1e-3, lifetime_ms=lifetime_ms, costs=costs)
        engine = SimulatedEngine(flow, seconds=20.0)
        for _ in range(3):
            observed(engine)
        seen[lifetime_ms] = observed(engine)
    at_once, batched = seen[0.0], seen[200.0]
    assert (batched.tasks["work"].cpu or 1.0) < 0.6 * (at_once.tasks["work"].cpu or 0.0)
    assert (batched.stream("source->work").output_batch_ms or 0.0) > 50.0
    assert at_once.stream("source->work").output_batch_ms == pytest.approx(0.0, abs=1e-6)


def test_full_queues_hold_the_source_up_and_stay_bounded() -> None:
    flow = pipeline(rate=1_000.0, replicas=2, work={"queue_items": 50}, step_s=0.1)
    engine = SimulatedEngine(flow, seconds=60.0)
    for _ in range(12):
        snapshot = observed(engine)
    assert (snapshot.tasks["work"].backlog_total or 0.0) <= 2 * 50 + 100
    assert engine.last is not None
    assert engine.last.emitted / 5.0 == pytest.approx(200.0, rel=0.1)
    assert engine.source_backlog > 40_000


def test_time_held_up_by_a_full_queue_is_not_useful() -> None:
    slow_sink = TaskModel("sink", "sink", 1, service_s=0.02, queue_items=20, site="out")
    flow = pipeline(rate=40.0, replicas=1, service_s=0.01, step_s=0.1)
    tasks = (flow.tasks[0], flow.tasks[1], slow_sink)
    flow = FlowModel(flow.name, tasks, flow.streams, cluster=flow.cluster, step_s=0.1)
    flow = FlowModel(
        flow.name,
        (TaskModel("source", "source", 1, load=Curve.constant(200.0), site="in"), *tasks[1:]),
        flow.streams,
        cluster=flow.cluster,
        step_s=0.1,
    )
    engine = SimulatedEngine(flow, seconds=100.0)
    for _ in range(20):
        snapshot = observed(engine)
    work = snapshot.tasks["work"]
    assert work.instances is not None
    one = work.instances[0]
    assert work.utilization == pytest.approx(1.0, abs=0.02)
    assert (one.processed or 0.0) / (one.useful_s or 1.0) == pytest.approx(100.0, rel=0.1)


def test_replicas_start_after_their_delay_and_workers_take_longer() -> None:
    cluster = ClusterModel(cores_per_worker=4.0, replica_start_s=2.0, worker_start_s=4.0)
    flow = pipeline(cluster=cluster, work={"per_worker": 4}, step_s=0.5)
    engine = SimulatedEngine(flow, seconds=60.0)
    observed(engine)
    engine.apply(decision(parallelism={"work": 4}))
    assert observed(engine).tasks["work"].parallelism == 4
    engine.apply(decision(parallelism={"work": 5}))
    assert observed(engine).tasks["work"].parallelism == 4
    assert observed(engine).tasks["work"].parallelism == 5
    engine.apply(decision(parallelism={"work": 1}))
    assert observed(engine).tasks["work"].parallelism == 1
    assert engine.actions == 3


def test_a_restart_stops_the_flow_and_loses_nothing_unless_told_so() -> None:
    processed, lost = {}, {}
    for loses in (False, True):
        cluster = ClusterModel(cores_per_worker=100.0, restart_s=4.0, restart_loses=loses)
        engine = SimulatedEngine(pipeline(rate=100.0, cluster=cluster, step_s=0.5), seed=1, seconds=25.0)
        observed(engine)
        engine.apply(decision(parallelism={"work": 6}))
        paused = observed(engine)
        processed[loses] = paused.tasks["work"].processed_total or 0.0
        for _ in range(3):
            observed(engine)
        lost[loses] = engine.lost
    assert lost[False] == 0
    assert lost[True] == pytest.approx(400, rel=0.2)
    assert processed[True] == pytest.approx(100, rel=0.4)


def test_work_on_a_full_worker_is_slower() -> None:
    seen = {}
    for cores in (2.0, 1.0):
        cluster = ClusterModel(cores_per_worker=cores)
        flow = pipeline(rate=120.0, replicas=2, service_s=0.01, cluster=cluster)
        engine = SimulatedEngine(flow, seconds=30.0)
        for _ in range(6):
            snapshot = observed(engine)
        seen[cores] = snapshot.tasks["work"].service_ms
    assert seen[2.0] == pytest.approx(10.0, rel=0.01)
    assert seen[1.0] == pytest.approx(20.0, rel=0.1)


def test_skewed_keys_load_some_replicas_more() -> None:
    stream = {"wiring": "key", "keys": Keys(count=20, exponent=1.5)}
    engine = SimulatedEngine(pipeline(rate=200.0, replicas=4, stream=stream), seconds=5.0)
    work = observed(engine).tasks["work"]
    assert work.utilization is not None
    assert work.utilization_max is not None
    assert work.utilization_max > 1.3 * work.utilization


def test_a_broadcast_reaches_every_replica() -> None:
    engine = SimulatedEngine(pipeline(rate=20.0, replicas=5, stream={"wiring": "broadcast"}), seconds=5.0)
    snapshot = observed(engine)
    sent = snapshot.tasks["source"].processed_total or 0.0
    assert snapshot.tasks["work"].processed_total == pytest.approx(5 * sent, abs=10)
    assert snapshot.tasks["source"].emitted_total == snapshot.stream("source->work").emitted_total == 5 * sent


def test_what_a_task_emits_is_the_sum_over_its_streams() -> None:
    flow = pipeline(rate=100.0, sources=1, replicas=2, service_s=1e-3, gaps=Deterministic())
    aside = StreamModel("work", "aside", ratio=Curve.constant(0.25))
    more = replace(flow, tasks=(*flow.tasks, TaskModel("aside", "sink")), streams=(*flow.streams, aside))
    snapshot = observed(SimulatedEngine(more, seconds=5.0))
    work = snapshot.tasks["work"]
    sent = {stream.name: stream.emitted_total or 0.0 for stream in snapshot.streams_out_of("work")}
    assert sent["work->sink"] == work.processed_total
    assert sent["work->aside"] == pytest.approx(125, abs=40)
    assert work.emitted_total == sum(sent.values())
    assert [one.emitted for one in work.instances or []] != [None, None]
    assert sum(one.emitted or 0.0 for one in work.instances or []) == work.emitted_total


def test_what_is_handed_on_inside_a_chain_counts_as_emitted() -> None:
    flow = pipeline(rate=100.0, sources=1, replicas=2, service_s=1e-3, gaps=Deterministic())
    work = replace(flow.tasks[1], minimum=None, maximum=None)
    chained = replace(
        flow,
        tasks=(flow.tasks[0], work, replace(work, name="more"), flow.tasks[2]),
        streams=(
            flow.streams[0],
            StreamModel("work", "more", "forward", ratio=Curve.constant(2.0)),
            StreamModel("more", "sink"),
        ),
        constraints=(),
    )
    engine = SimulatedEngine(chained, seconds=10.0)
    apart = observed(engine)
    engine.apply(decision(chains=[["work", "more"]]))
    together = observed(engine)
    for snapshot in (apart, together):
        assert snapshot.stream("work->more").emitted_total == pytest.approx(1000, abs=5)
        assert snapshot.tasks["work"].emitted_total == snapshot.stream("work->more").emitted_total


def test_a_source_that_is_behind_tells_by_how_many_items() -> None:
    flow = pipeline(rate=100.0, sources=1, replicas=2, service_s=1e-3, gaps=Deterministic())
    slow = replace(flow, tasks=(replace(flow.tasks[0], service_s=0.02), *flow.tasks[1:]))
    snapshot = observed(SimulatedEngine(slow, seconds=5.0))
    assert snapshot.tasks["source"].lag_items == pytest.approx(250, abs=5)
    assert snapshot.tasks["work"].lag_items is None


def test_a_window_emits_once_and_is_measured_by_its_first_item() -> None:
    work = {"every_s": 0.2, "latency": "read_write"}
    engine = SimulatedEngine(pipeline(rate=500.0, replicas=2, service_s=1e-3, work=work), seconds=10.0)
    observed(engine)
    snapshot = observed(engine)
    assert snapshot.tasks["work"].emitted_total == pytest.approx(2 * 25, abs=1)
    assert snapshot.tasks["work"].latency_ms == pytest.approx(197.0, abs=3.0)


def test_a_group_emits_one_item_for_so_many() -> None:
    work = {"group": 4, "latency": "read_write"}
    flow = pipeline(rate=100.0, sources=1, replicas=1, service_s=1e-4, gaps=Deterministic(), work=work)
    engine = SimulatedEngine(flow, seconds=10.0)
    observed(engine)
    snapshot = observed(engine)
    assert snapshot.tasks["work"].emitted_total == pytest.approx(125, abs=1)
    assert snapshot.tasks["work"].latency_ms == pytest.approx(15.1, abs=0.1)


def test_ratios_thin_out_or_multiply() -> None:
    for ratio, expected in ((0.25, 250.0), (3.0, 3_000.0), (1.5, 1_500.0)):
        flow = pipeline(
            rate=200.0,
            replicas=20,
            service_s=1e-3,
            stream={"ratio": Curve.constant(ratio)},
            gaps=Deterministic(),
        )
        snapshot = observed(SimulatedEngine(flow, seconds=5.0))
        assert snapshot.tasks["work"].processed_total == pytest.approx(expected, rel=0.15)


def test_chaining_removes_the_queue_and_the_cost_in_between() -> None:
    forward = StreamModel("first", "second", "forward", costs=Costs(1e-3, 0.0, 1e-3, 0.0, 0.01))
    flow = FlowModel(
        "chain",
        (
            TaskModel("source", "source", 1, load=Curve.constant(50.0), site="in"),
            TaskModel("first", replicas=2, service_s=5e-3, per_worker=2),
            TaskModel("second", replicas=2, service_s=5e-3, per_worker=2),
            TaskModel("sink", "sink", 1, site="out"),
        ),
        (StreamModel("source", "first"), forward, StreamModel("second", "sink")),
    )
    engine = SimulatedEngine(flow, seconds=40.0)
    apart = observed(engine)
    assert apart.chains == [["first"], ["second"]]
    engine.apply(decision(chains=[["first", "second"]]))
    observed(engine)
    chained = observed(engine)
    assert chained.chains == [["first", "second"]]
    assert chained.stream("first->second").latency_ms == pytest.approx(0.0, abs=1e-9)
    assert (apart.stream("first->second").latency_ms or 0.0) > 9.9
    assert chained.tasks["second"].service_ms == pytest.approx(5.0, rel=1e-6)
    assert (chained.tasks["first"].cpu or 0.0) < (apart.tasks["first"].cpu or 1.0)
    engine.apply(decision(chains=[["first"], ["second"]]))
    observed(engine)
    again = observed(engine)
    assert (again.stream("first->second").latency_ms or 0.0) > 9.9
    assert engine.last is not None
    assert engine.last.delivered == pytest.approx(250, rel=0.25)


def test_useful_time_is_never_negative_not_even_by_rounding() -> None:
    engine = SimulatedEngine(wordcount.flink(), seed=1, seconds=40.0)
    for _ in range(4):
        snapshot = observed(engine)
        for task in snapshot.tasks.values():
            every = [task.useful_s, *(instance.useful_s for instance in task.instances or [])]
            assert all(useful_s is not None and useful_s >= 0.0 for useful_s in every)
        engine.apply(decision(parallelism={"flat_map": 20, "count": 11}))
