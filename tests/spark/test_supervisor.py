"""The life of a flow, without Spark: who ends it, who starts it again, and what is given back."""

import threading
import time
from contextlib import ExitStack
from typing import Any, cast

import msgspec
import pytest

import penstock as ps
from penstock.flow.layers import lay_out
from penstock.spark.bridge import Seen
from penstock.spark.checkpoint import Committed
from penstock.spark.holder import new_holder
from penstock.spark.restarts import Restarts
from penstock.spark.slots import SlotBook
from penstock.spark.supervisor import Supervisor
from penstock.wire.orders import Switches
from penstock.wire.reports import Failure
from penstock.wire.routes import routes
from tests.spark.test_crashes import wait_for


class FakeBridge:
    """A query that runs until it is ended, and reaches its gate when it is asked to, if it is told to."""

    def __init__(self) -> None:
        self.is_active = True
        self.is_local = False
        self.drains = True
        self.dies_in_drain = 0
        self.problem: str | None = None

    def shuffle_problem(self) -> str | None:
        return self.problem

    def start(self) -> None:
        self.is_active = True

    def end_batch(self, *, closing: bool) -> None:
        assert closing
        if self.dies_in_drain:
            self.dies_in_drain -= 1
            self.is_active = False

    def await_gate(self, timeout_ms: int) -> bool:
        time.sleep(0.001)
        return self.is_active and self.drains

    def end_query(self) -> None:
        self.is_active = False

    def close(self, timeout_ms: int) -> bool:
        return True

    def batch(self) -> int:
        return 4

    def error(self) -> object:
        return "Spark is tired"

    def lost_executors(self) -> str:
        return ""

    def slots(self) -> bytes:
        return b"{}"

    def replace_silent_executors(self) -> None:
        """None is silent."""

    def look(self) -> Seen:
        return Seen(msgspec.Raw(b"[]"), "", exhausted=False)

    def is_exhausted(self) -> bool:
        return False


def nothing() -> None:
    """Happens meanwhile."""


class FakeLauncher:
    """Starts the fake again, as often as it may."""

    checkpoint = "there"
    is_resumable = True
    committing = commits = commit_problem = None

    def __init__(self, bridge: FakeBridge) -> None:
        self.bridge = bridge
        self.launches = 0
        self.room = 100
        self.meanwhile = nothing

    def launch(self, *_: object) -> Committed:
        self.launches += 1
        self.meanwhile()
        self.bridge.start()
        return Committed(3)

    def close(self, timeout_ms: int) -> bool:
        return self.bridge.close(timeout_ms)

    def slots(self) -> int:
        return self.room


class Lived:
    """A supervised flow of fakes, and what it has told and given back."""

    def __init__(self, restarts: int = 10) -> None:
        flow = ps.Flow("alive")
        flow.source(ps.paced(lambda partition, index, seed: index, 1), name="items").sink(print, name="out")
        layout = lay_out(flow.graph())
        switches = Switches(
            routes=routes(layout),
            active={"items": 1, "out": 1},
            lifetime_ms={"items->out": 0.0},
            sampling=0.1,
            measure_every_s=1.0,
        )
        self.bridge = FakeBridge()
        self.launcher = FakeLauncher(self.bridge)
        self.notices: list[str] = []
        self.given_back: list[str] = []
        kept = ExitStack()
        kept.callback(self.given_back.append, "kept")
        self.supervisor = Supervisor(
            layout,
            switches,
            cast("Any", self.launcher),
            SlotBook().claim("run", "alive", 2, 100, ""),
            Restarts(restarts, time.monotonic),
            Committed(3),
            kept,
            self.notices.append,
        )


def test_stop_drains_gives_back_once_and_is_told_again() -> None:
    lived = Lived()
    drained = lived.supervisor.stop(10)
    assert drained is not None
    assert (drained.commit, drained.items) == (4, {"out": 0})
    assert lived.supervisor.stop(10) is drained
    lived.supervisor.abandon()
    assert lived.given_back == ["kept"]
    assert lived.supervisor.state == "stopped"


def test_a_drain_without_end_says_which_batch_is_not_committed() -> None:
    lived = Lived()
    lived.bridge.drains = False
    with pytest.raises(
        ps.JobFailed,
        match=r"within 50 ms and was stopped: what came after its last commit is not",
    ):
        lived.supervisor.stop(0.05)
    assert lived.supervisor.state == "failed"
    assert lived.supervisor.stop(10) is None
    assert lived.given_back == ["kept"]


def test_a_query_that_dies_in_the_drain_is_started_again_as_often_as_it_takes() -> None:
    lived = Lived()
    lived.bridge.dies_in_drain = 2
    drained = lived.supervisor.stop(30)
    assert drained is not None
    assert lived.launcher.launches == 2
    assert lived.supervisor.restarts.count == 2


def test_a_checkpoint_that_has_no_room_for_state_is_tried_again_and_named_at_the_end() -> None:
    lived = Lived(restarts=1)
    failure = Failure("counts", 0, "in the checkpoint /full: no room", may_pass=True)
    for launches, state in ((1, "running"), (1, "failed")):
        lived.supervisor.reported.failure = failure
        lived.bridge.is_active = False
        wait_for(lambda n=launches, s=state: (lived.launcher.launches, lived.supervisor.state) == (n, s))
    told = str(lived.supervisor.error)
    assert (
        "the checkpoint /full: no room; it was started again 1 times within 10 min, and is given up" in told
    )


def test_that_sparks_shuffle_is_used_after_a_restart_is_told_once() -> None:
    """An executor that came later may have no connections to the others."""
    lived = Lived()
    lived.bridge.dies_in_drain = 2
    lived.bridge.problem = "executor 3 cannot listen"
    lived.supervisor.stop(30)
    words = "Penstock's shuffle cannot be used, Spark's own is: executor 3 cannot listen"
    assert lived.notices.count(words) == 1


def test_an_outage_is_waited_for_by_stop_and_ended_by_abandon() -> None:
    lived = Lived()
    lived.launcher.room = 0
    lived.bridge.is_active = False
    wait_for(lambda: any("waits for task slots" in notice for notice in lived.notices))
    threading.Timer(0.2, setattr, [lived.launcher, "room", 100]).start()
    assert lived.supervisor.stop(30) is not None
    lived = Lived()
    lived.launcher.room = 0
    lived.bridge.is_active = False
    wait_for(lambda: lived.supervisor.state == "restarting")
    lived.supervisor.abandon()
    assert "it was stopped before it could be started again" in str(lived.supervisor.error)


def test_abandon_during_a_start_ends_what_has_started() -> None:
    lived = Lived()
    began, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        began.set()
        assert go_on.wait(10)

    lived.launcher.meanwhile = pause
    lived.bridge.is_active = False
    assert began.wait(10)
    abandoning = threading.Thread(target=lived.supervisor.abandon)
    abandoning.start()
    go_on.set()
    abandoning.join(10)
    assert lived.supervisor.over.is_set()
    assert not lived.bridge.is_active
    assert lived.given_back == ["kept"]


@pytest.mark.parametrize("outage", [False, True])
def test_a_place_that_is_taken_ends_the_flow_also_in_an_outage(outage: bool) -> None:
    lived = Lived()
    if outage:
        lived.launcher.room = 0
        lived.bridge.is_active = False
        wait_for(lambda: lived.supervisor.state == "restarting")
    lived.supervisor.place_taken(new_holder("thief", [1]))
    assert lived.supervisor.over.wait(10)
    assert lived.supervisor.state == "failed"
    assert 'flow "alive": its checkpoint there was taken over by flow "thief" on' in str(
        lived.supervisor.error
    )
    assert lived.launcher.launches == 0
    assert lived.given_back == ["kept"]


def test_what_is_to_be_called_when_it_is_over_is_called_also_if_it_is() -> None:
    lived, called = Lived(), list[str]()
    lived.supervisor.when_over(lambda: called.append("in time"))
    assert called == []
    lived.supervisor.stop(10)
    assert called == ["in time"]
    lived.supervisor.when_over(lambda: called.append("late"))
    assert called == ["in time", "late"]
