"""From a recording back to a flow model: what is simulated, recorded and simulated again stays the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import app
from penstock.control.recording import Recorder, read_snapshots
from penstock.io.schedule import constant
from penstock.policy.registry import create_policy
from penstock.sim.declared import Beside, declared_model
from penstock.sim.distributions import Exponential, Gamma
from penstock.sim.load import Curve
from penstock.sim.model import Costs, FlowModel, ModelError
from penstock.sim.recorded import recorded_model
from penstock.sim.run import Run, simulate
from tests.control.headers import HEADER
from tests.sim.flows import pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.stats.snapshot import Snapshot

LOAD = Curve.steps([(30.0, 200.0), (30.0, 600.0), (30.0, 200.0)])


def original() -> FlowModel:
    flow = pipeline(
        sources=1, replicas=4, service_s=0.005, service=Gamma(0.5), costs=Costs(transport_s=0.002)
    )
    source = replace(flow.tasks[0], load=LOAD)
    return replace(flow, tasks=(source, *flow.tasks[1:]), seconds=90.0)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    with Recorder(path, HEADER) as recorder:
        simulate(original(), create_policy("ds2"), seed=1, recorder=recorder)
    return path


def test_the_model_has_what_was_measured(recording: Path) -> None:
    model = recorded_model(list(read_snapshots(recording)))
    assert [task.name for task in model.tasks] == ["source", "work", "sink"]
    work = model.task("work")
    assert work.service_s == pytest.approx(0.005, rel=0.05)
    assert work.service.scv == pytest.approx(0.25, rel=0.2)
    assert work.bounds == (1, 50)
    load = model.task("source").load
    assert load is not None
    assert [load.at(at_s) for at_s in (10, 45, 80)] == pytest.approx([200, 600, 200], rel=0.15)
    assert model.streams[0].ratio.at(0.0) == pytest.approx(1.0, rel=0.02)
    assert (model.interval_s, model.seconds) == (5.0, 90.0)


def test_the_time_on_the_way_is_what_neither_batching_nor_the_queue_explains(recording: Path) -> None:
    snapshot = next(read_snapshots(recording))
    way = msgspec.structs.replace(snapshot.streams[0], latency_ms=7.0, output_batch_ms=2.0)
    work = msgspec.structs.replace(snapshot.tasks["work"], queue_wait_ms=3.5)
    seen = msgspec.structs.replace(
        snapshot, streams=[way, snapshot.streams[1]], tasks={**snapshot.tasks, "work": work}
    )
    assert recorded_model([seen]).streams[0].costs.transport_s == pytest.approx(0.0015)


def test_each_stream_has_the_share_that_was_measured(recording: Path) -> None:
    """Of 100 items, 25 went aside and 300 to each of the 4 replicas of a broadcast."""
    seen = next(read_snapshots(recording))
    work = msgspec.structs.replace(seen.tasks["work"], processed_total=100.0, emitted_total=1225.0)
    everybody = msgspec.structs.replace(seen.tasks["work"], parallelism=4)
    streams = [
        seen.streams[0],
        msgspec.structs.replace(seen.streams[1], emitted_total=25.0),
        msgspec.structs.replace(
            seen.streams[1], receiver="everybody", wiring="broadcast", emitted_total=1200.0
        ),
    ]
    tasks = {**seen.tasks, "work": work, "everybody": everybody}
    forked = msgspec.structs.replace(seen, tasks=tasks, streams=streams)
    model = recorded_model([forked])
    assert [stream.ratio.at(0.0) for stream in model.streams] == [1.0, 0.25, 3.0]
    unknown = [msgspec.structs.replace(stream, emitted_total=None) for stream in streams]
    old = recorded_model([msgspec.structs.replace(forked, streams=unknown)])
    assert old.streams[1].ratio.at(0.0) == 6.125, "shared evenly, as nothing better is known"


def replicas(run: Run) -> list[int]:
    return [point.replicas["work"] for point in run.points]


def test_what_becomes_of_items_may_change_while_a_flow_runs(tmp_path: Path) -> None:
    flow, path = original(), tmp_path / "changes.jsonl"
    out = replace(flow.streams[1], ratio=Curve.steps([(40.0, 1.0), (50.0, 3.0)]))
    with Recorder(path, HEADER) as recorder:
        simulate(replace(flow, streams=(flow.streams[0], out)), create_policy("static"), recorder=recorder)
    ratio = recorded_model(list(read_snapshots(path))).streams[1].ratio
    assert [ratio.at(at_s) for at_s in (5.0, 35.0, 60.0, 85.0)] == pytest.approx([1, 1, 3, 3], rel=0.05)


def test_a_task_that_keeps_items_for_a_while_is_seen_by_its_latency(tmp_path: Path) -> None:
    flow, path = original(), tmp_path / "windows.jsonl"
    work = replace(flow.task("work"), every_s=0.2, latency="read_write")
    tasks = tuple(work if task.name == "work" else task for task in flow.tasks)
    with Recorder(path, HEADER) as recorder:
        run = simulate(replace(flow, tasks=tasks), create_policy("static"), recorder=recorder)
    model = recorded_model(list(read_snapshots(path)))
    assert model.task("work").every_s == pytest.approx(0.2, rel=0.05)
    assert model.streams[1].ratio.at(50.0) == pytest.approx(1.0, rel=0.05), "of a window"
    again = simulate(model, create_policy("static"))
    (name,) = run.points[5].latency_ms
    before, after = (one.points[5].latency_ms[name] for one in (run, again))
    assert after == pytest.approx(before, rel=0.1)


def test_under_another_load_items_become_what_they_did_on_the_mean() -> None:
    flow = ps.Flow("pipeline")
    numbers = flow.source(ps.paced(lambda partition, index, seed: index, 100), name="source")
    numbers.map(abs, name="work").sink(print, name="sink")
    out = replace(original().streams[1], ratio=Curve.steps([(45.0, 1.0), (45.0, 3.0)]))
    seen = replace(original(), streams=(original().streams[0], out))
    ratios = [
        declared_model(flow.graph(), Beside(measured=seen, loads=loads)).streams[1].ratio
        for loads in ({}, {"source": constant(50.0)})
    ]
    assert [[ratio.at(at_s) for at_s in (10.0, 80.0)] for ratio in ratios] == [[1.0, 3.0], [2.0, 2.0]]


def test_a_step_inside_an_interval_and_a_start_inside_the_first(recording: Path) -> None:
    """100/s for half of the second interval, then 300/s; of the first one nothing came for 3 s."""
    first = next(read_snapshots(recording))

    def interval(rate: float, sent: float) -> Snapshot:
        source = msgspec.structs.replace(first.tasks["source"], rate_total=rate, processed_total=sent)
        return msgspec.structs.replace(first, tasks={**first.tasks, "source": source})

    seen = [interval(100.0, 200.0), interval(200.0, 1000.0), interval(300.0, 1500.0), interval(300.0, 0.0)]
    load = recorded_model(seen).task("source").load
    assert load is not None
    assert (load.from_s, load.values) == (
        (0.0, 3.0, 5.0, 7.5, 10.0, 15.0),
        (0.0, 100.0, 100.0, 300.0, 300.0, 300.0),
    )
    assert load.area_until(20.0) == 200.0 + 1000.0 + 1500.0 + 1500.0
    later = recorded_model(seen, from_start=False).task("source").load
    assert later is not None
    assert later.area_until(5.0) == 500.0


def test_simulating_the_recording_repeats_the_run(recording: Path) -> None:
    before = simulate(original(), create_policy("ds2"), seed=1)
    model = recorded_model(list(read_snapshots(recording)), gaps=Exponential())
    after = simulate(model, create_policy("ds2"), seed=2)
    assert all(abs(a - b) <= 1 for a, b in zip(replicas(before), replicas(after), strict=True))


def test_holes_are_bridged_and_a_recording_without_a_load_is_refused(recording: Path) -> None:
    snapshots = list(read_snapshots(recording))
    hole = {
        **snapshots[3].tasks,
        "source": msgspec.structs.replace(snapshots[3].tasks["source"], rate_total=None),
    }
    snapshots[3] = msgspec.structs.replace(snapshots[3], tasks=hole)
    load = recorded_model(snapshots).task("source").load
    assert load is not None
    assert load.at(16.0) == load.at(14.0)
    with pytest.raises(ModelError, match="task 'source': the recording has no rate_total"):
        recorded_model(snapshots[3:4])
    work = snapshots[0].tasks["work"]
    other = msgspec.structs.replace(snapshots[0], tasks={**snapshots[0].tasks, "more": work})
    with pytest.raises(
        ModelError, match=r"snapshot 1 of the recording has other tasks .*\(source, work, sink, more"
    ):
        recorded_model([snapshots[0], other])
    with pytest.raises(ModelError, match="without snapshots"):
        recorded_model([])


def test_penstock_simulate_takes_a_recording(recording: Path) -> None:
    done = CliRunner().invoke(
        app, ["simulate", "--measured", str(recording), "--policy", "threshold", "--json"]
    )
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert (summary["flow"], summary["policy"], summary["simulated_s"]) == ("run", "threshold", 90.0)
    both = CliRunner().invoke(app, ["simulate", "primetest", "--measured", str(recording)])
    assert (both.exit_code, "a model of its own" in both.stderr) == (2, True)
    absent = CliRunner().invoke(app, ["simulate", "--measured", "absent.jsonl"])
    assert (absent.exit_code, "absent.jsonl" in absent.stderr) == (2, True)
