"""The state machine of a worker's life against a model: nothing is lost, in whatever order things happen."""

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.wire.frames import Careful, read_data
from penstock.wire.orders import Verdict

pytestmark = pytest.mark.spark

EVENTS = ("input", "unneeded", "input_ended", "works", "ends", "dies")
WITH_WORKER = {"RUNNING", "RETIRING", "LEAVING", "ENDING"}
ENDS = {"RESTART": None, "RESTART_LAST": "last", "RESTART_END": "end"}


class Worker:
    """Does what it was given, in order, and ends when it was asked to and is done."""

    def __init__(self, given: list[int], asked: str | None) -> None:
        self.given = given
        self.asked = asked


class Model:
    """A host and its worker: Java decides, the model carries it out and keeps account."""

    def __init__(self, jvm: Any) -> None:
        bridge = jvm.org.penstock.bridge
        self.event = bridge.Life.Event
        self.life = bridge.Life()
        self.unacknowledged = bridge.Unacknowledged()
        self.worker: Worker | None = None
        self.given: list[int] = []
        self.done: set[int] = set()
        self.input_is_open = True
        self.finished = 0
        self.waiting = 0
        self.released = 0

    @property
    def state(self) -> str:
        return str(self.life.state().name())

    def on(self, event: str) -> str:
        return str(self.life.on(self.event.valueOf(event)).name())

    def happens(self, event: str) -> None:
        getattr(self, event)()
        self.check()

    def input(self) -> None:
        if not self.input_is_open:
            return
        action = self.on("NEEDED")
        if action == "WAIT":
            return  # whoever delivers waits, and tries again later
        if action == "START":
            assert self.worker is None
            self.worker = Worker([], None)
        assert self.state == "RUNNING"
        sequence = self._sequence(self.unacknowledged.give(b"envelope"))
        self.given.append(sequence)
        assert self.worker is not None
        self.worker.given.append(sequence)

    def unneeded(self) -> None:
        action = self.on("UNNEEDED")
        if action == "RELEASE":
            return
        self.waiting += 1
        if action == "SEND_LAST":
            self._ask("last")

    def input_ended(self) -> None:
        if not self.input_is_open:
            return
        self.input_is_open = False
        action = self.on("INPUT_ENDED")
        if action == "SEND_END":
            self._ask("end")
        self.finished += action == "FINISH"

    def works(self) -> None:
        if self.worker is not None and self.worker.given:
            sequence = self.worker.given.pop(0)
            self.done.add(sequence)
            self.unacknowledged.acknowledge(sequence)

    def ends(self) -> None:
        if self.worker is None or self.worker.asked is None or self.worker.given:
            return
        assert self.unacknowledged.size() == 0
        self.worker = None
        action = self.on("ENDED")
        assert action in ("RELEASE", "FINISH")
        self.released, self.waiting = self.released + self.waiting, 0
        self.finished += action == "FINISH"

    def dies(self) -> None:
        if self.worker is None:
            return
        asked = self.worker.asked
        action = self.on("DIED")
        assert ENDS[action] == asked, "its successor is asked for the same end"
        again = [self._sequence(frame) for frame in self.unacknowledged.again()]
        assert again == self.worker.given, "and gets what was not acknowledged, in order"
        self.worker = Worker(again, asked)

    def check(self) -> None:
        assert (self.worker is not None) == (self.state in WITH_WORKER)
        left = set(self.worker.given) if self.worker else set()
        assert self.done | left == set(self.given), "nothing is lost"
        assert self.finished == (self.state == "OVER")
        assert self.waiting == 0 or self.worker is not None, "nobody waits for an end that never comes"

    def bring_to_an_end(self) -> None:
        self.happens("input_ended")
        while self.state != "OVER":
            self.happens("works")
            self.happens("ends")

    def _ask(self, end: str) -> None:
        assert self.worker is not None
        assert self.worker.asked is None, "a worker is asked to end once"
        self.worker.asked = end

    @staticmethod
    def _sequence(frame: Any) -> int:
        return int(struct.unpack_from("<q", bytes(frame.array()), 5)[0])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(st.sampled_from(EVENTS), max_size=40))
def test_any_order_of_events(spark: SparkSession, events: list[str]) -> None:
    model = Model(spark._jvm)
    for event in events:
        model.happens(event)
    model.bring_to_an_end()
    assert model.done == set(model.given)
    assert model.finished == 1


def test_a_source_ends_by_itself(spark: SparkSession) -> None:
    model = Model(spark._jvm)
    assert model.on("NEEDED") == "START"
    assert model.on("ENDED") == "FINISH"
    assert model.state == "OVER"
    assert [model.on(event) for event in ("NEEDED", "INPUT_ENDED", "DIED")] == ["NOTHING"] * 3
    assert model.on("UNNEEDED") == "RELEASE"


class Deaths:
    """Workers that die one after the other, and what the next one is given."""

    def __init__(self, jvm: Any) -> None:
        bridge = jvm.org.penstock.bridge
        self.epitaph = bridge.Epitaph
        self.unacknowledged = bridge.Unacknowledged()
        for _ in range(2):
            self.unacknowledged.give(b"envelope")

    def comes_to(self, sequence: int, item: int) -> None:
        self.unacknowledged.at(sequence, item)

    def dies(self, how: str = "killed by signal 11", *of: int) -> bool:
        """False when it is enough; `of` are the envelope and the item that are known to be at fault."""
        return bool(self.unacknowledged.died(0, self.epitaph("task", how, *of or (0, -1))))

    def next_gets(self) -> list[tuple[int, dict[int, str]]]:
        """Of each envelope: the item to begin with, and the verdicts on others."""
        found = []
        for frame in self.unacknowledged.again():
            _, _, careful, data = read_data(memoryview(bytes(frame.array())[5:]))
            assert bytes(data) == b"envelope"
            assert isinstance(careful, Careful)
            verdicts = {i: msgspec.json.decode(v, type=Verdict) for i, v in careful.verdicts.items()}
            assert all(verdict.task == "task" for verdict in verdicts.values())
            found.append((careful.first, {i: verdict.problem for i, verdict in verdicts.items()}))
        return found


def test_an_item_that_kills_three_workers_is_put_aside_and_those_before_it_are_done(
    spark: SparkSession,
) -> None:
    deaths = Deaths(spark._jvm)
    assert deaths.dies()
    assert deaths.next_gets() == [(0, {}), (0, {})]
    deaths.comes_to(1, 0)
    deaths.comes_to(1, 4)
    assert deaths.dies()
    assert deaths.next_gets() == [(4, {}), (0, {})]
    deaths.comes_to(1, 4)
    assert deaths.dies("its worker used 2 GB")
    problem = "this item has killed its worker process three times: its worker used 2 GB"
    assert deaths.next_gets() == [(4, {4: problem}), (0, {})]


def test_an_item_that_is_known_to_hang_is_put_aside_at_once(spark: SparkSession) -> None:
    deaths = Deaths(spark._jvm)
    for item in range(5):
        assert deaths.dies("it hangs", 2, item), "each of them gets the flow on"
    assert deaths.next_gets() == [(0, {}), (0, dict.fromkeys(range(5), "it hangs"))]
    assert deaths.dies("it hangs", 9, 0), "acknowledged meanwhile"


def test_deaths_without_anything_done_are_enough_at_last(spark: SparkSession) -> None:
    deaths = Deaths(spark._jvm)
    deaths.comes_to(1, 7)
    deaths.unacknowledged.acknowledge(1)
    assert [deaths.dies() for _ in range(3)] == [True, True, False], "an item that is done is not to blame"
