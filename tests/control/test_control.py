"""The controller of a flow that is over before its first interval: what can be asked of it and switched."""

from collections.abc import Mapping, Sequence

import pytest

import penstock as ps
from penstock.control.control import Control
from penstock.control.control_plan import ControlPlan
from penstock.control.engine import Boundary
from penstock.durations import Duration
from penstock.flow.errors import FlowError
from penstock.flow.layers import lay_out
from penstock.observe.progress import Status
from penstock.stats.snapshot import Snapshot


class OverFlow:
    """A handle that has nothing to show."""

    slots = 10
    is_running = False
    commit_s = 600.0
    status = Status("stopped", "batch 0")

    def __init__(self) -> None:
        flow = ps.Flow("over")
        flow.source(ps.paced(lambda partition, index, seed: index, 1), name="items").sink(print, name="out")
        self.layout = lay_out(flow.graph())

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
