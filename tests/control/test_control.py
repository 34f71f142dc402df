"""The controller of a flow that is over before its first interval: what can be asked of it and switched."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import penstock as ps
from penstock.control.control import Control
from penstock.control.control_plan import ControlPlan
from penstock.control.engine import Boundary
from penstock.control.events import Stopped
from penstock.control.recording import events_path, read_events
from penstock.durations import Duration
from penstock.flow.errors import FlowError
from penstock.flow.layers import lay_out
from penstock.observe.progress import Status
from penstock.observe.reported import Metrics, TaskMetrics
from penstock.stats.snapshot import Snapshot
from penstock.wire.divisions import Spans


class OverFlow:
    """A handle that has nothing to show."""

    slots = 10
    is_running = False
    commit_s = 600.0
    status = Status("stopped", "batch 0")

    def metrics(self) -> Metrics:
        """A worker had died."""
        return Metrics(tasks={"out": TaskMetrics(active=1, pool=1, restarts=1)}, latency={})

    def outages(self) -> list[Stopped]:
        """None."""
        return []

    def __init__(self) -> None:
        flow = ps.Flow("over")
        flow.source(ps.paced(lambda partition, index, seed: index, 1), name="items").sink(print, name="out")
        self.layout = lay_out(flow.graph())
        self.recent_progress = [{"time_s": float(at_s), "batch": at_s // 30} for at_s in range(70)]

    def tell(self, notice: str) -> None:
        """Never called."""
        raise NotImplementedError

    def await_end(self, timeout_s: float | None) -> bool:
        """At once."""
        return True

    def set_measure_every(self, every: Duration) -> None:
        """Nobody measures."""

    def snapshot(self, interval_s: float) -> Snapshot:
        """Never asked for."""
        raise NotImplementedError

    def adapt(
        self,
        replicas: Mapping[str, int],
        lifetimes_ms: Mapping[str, float],
        chains: Sequence[Sequence[str]] | None = None,
        pools: Mapping[str, int] | None = None,
        tables: Mapping[str, Spans] | None = None,
    ) -> float | None:
        """Never asked for."""
        raise NotImplementedError

    def await_effect(self, timeout_s: float) -> bool:
        """Never asked for."""
        raise NotImplementedError

    def last_boundary(self) -> Boundary | None:
        """None."""
        return None


def test_decisions_are_recommended_and_carried_out_again() -> None:
    control = Control(OverFlow(), ControlPlan("static"))
    control.join(10)
    for mode in ("recommend", "off", "on"):
        control.set_mode(mode)
        assert control.mode == control.status().mode == mode
        assert control.applies is control.status().applies is (mode == "on")


def test_one_that_was_started_to_recommend_stays_so() -> None:
    control = Control(OverFlow(), ControlPlan("static", recommend=True))
    control.join(10)
    assert not control.applies
    control.set_mode("recommend")
    with pytest.raises(
        FlowError, match=r'flow "over" was started to be given recommendations only, .*--recommend'
    ):
        control.set_mode("on")
    assert not control.applies


def test_what_happened_is_recorded_once(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    Control(OverFlow(), ControlPlan("static", recording=recording)).join(10)
    assert [(event.at_s, event.kind, event.text) for event in read_events(recording) if event.at_s < 100] == [
        (30.0, "commit", "batch 0 is committed"),
        (60.0, "commit", "batch 1 is committed"),
    ]
    assert [(event.kind, event.text, event.detail) for event in read_events(recording)][2:] == [
        ("failure", "out: 1 worker processes died and were replaced", None),
        ("run", "the flow is stopped", "batch 0"),
    ]


def test_events_that_cannot_be_written_are_told_and_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recording = tmp_path / "run.jsonl"
    events_path(recording).mkdir()
    control = Control(OverFlow(), ControlPlan("static", recording=recording))
    control.join(10)
    assert control.problem is None
    assert [line.message.partition(":")[0] for line in caplog.records if "not recorded" in line.message] == [
        "flow over"
    ]
