"""Reports on a wire that loses, repeats and delays: each arrives at the driver once, in order."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Wire:
    """Questions and answers under way; whoever holds one may forget it, or hand it over again."""

    def __init__(self, jvm: Any) -> None:
        self.outgoing = jvm.org.penstock.bridge.Reports.Outgoing()
        self.incoming = jvm.org.penstock.bridge.Reports.Incoming()
        self.questions: list[Any] = []
        self.answers: list[int] = []
        self.arrived: list[str] = []
        self.made = 0

    def report(self) -> None:
        self.outgoing.add("run", f"report {self.made}")
        self.made += 1

    def ask(self) -> None:
        self.questions.append(self.outgoing.pending())

    def receive(self, which: int, *, again: bool) -> None:
        if self.questions:
            place = which % len(self.questions)
            taken = self.incoming.take("agent", self.questions[place])
            self.arrived += [report.json() for report in taken.fresh()]
            self.answers.append(taken.upTo())
            if not again:
                del self.questions[place]

    def answer(self, which: int) -> None:
        if self.answers:
            self.outgoing.delivered(self.answers.pop(which % len(self.answers)))

    def lose(self, which: int) -> None:
        for under_way in (self.questions, self.answers):
            if under_way:
                del under_way[which % len(under_way)]


STEPS = st.tuples(
    st.sampled_from(["report", "ask", "receive", "repeat", "answer", "lose"]), st.integers(0, 5)
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=40))
def test_every_report_arrives_once(spark: SparkSession, steps: list[tuple[str, int]]) -> None:
    wire = Wire(spark._jvm)
    for step, which in steps:
        if step == "report":
            wire.report()
        elif step == "ask":
            wire.ask()
        elif step in ("receive", "repeat"):
            wire.receive(which, again=step == "repeat")
        elif step == "answer":
            wire.answer(which)
        else:
            wire.lose(which)
    assert wire.arrived == [f"report {number}" for number in range(len(wire.arrived))]
    wire.ask()
    wire.receive(len(wire.questions) - 1, again=False)
    assert wire.arrived == [f"report {number}" for number in range(wire.made)]
    wire.answer(len(wire.answers) - 1)
    assert list(wire.outgoing.pending()) == []


def test_a_driver_that_is_away_for_long_costs_regular_reports_and_no_event(spark: SparkSession) -> None:
    assert spark._jvm is not None
    outgoing = spark._jvm.org.penstock.bridge.Reports.Outgoing()
    outgoing.add("run", '{"failed":{}}')
    for _ in range(20_100):
        outgoing.add("run", '{"worker":{}}')
    pending = outgoing.pending()
    assert pending.size() == 20_000
    assert pending.get(0).json() == '{"failed":{}}'


def test_nobody_waits_for_an_executor_that_is_gone(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    run = jvm.org.penstock.bridge.Runs.open("two executors")
    try:
        run.publish('{"active": {}}')
        run.noteAdopted("here", 9)
        run.noteAdopted("lost", 0)
        assert not run.awaitAdopted(20)
        removed = jvm.org.apache.spark.scheduler.SparkListenerExecutorRemoved(0, "lost", "it was killed")
        spark.sparkContext._jsc.sc().listenerBus().post(removed)
        assert run.awaitAdopted(5000)
    finally:
        jvm.org.penstock.bridge.Runs.close("two executors", 0)


def test_what_is_reported_while_a_run_is_closed_counts(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    driver = jvm.org.penstock.bridge.PenstockPlugin().driverPlugin()
    process = {"kernel": "", "namespaces": "", "pid": 0, "startedTicks": ""}

    def ask(number: int, *known: str) -> dict[str, Any]:
        report = {"number": number, "run": "closing", "json": f'{{"number":{number}}}'}
        poll = {
            "executor": "far",
            "agent": "far",
            "process": process,
            "known": dict.fromkeys(known, 0),
            "reports": [report],
        }
        answer: dict[str, Any] = json.loads(driver.receive(json.dumps({"poll": poll})))
        return answer

    ask(1, "closing")  # an executor that has workers of a run which nobody knows
    run = jvm.org.penstock.bridge.Runs.open("closing")
    with ThreadPoolExecutor(1) as pool:
        is_closed = pool.submit(jvm.org.penstock.bridge.Runs.close, "closing", 10_000)
        deadline_s = time.monotonic() + 10
        closed: list[str] = []
        while "closing" not in closed and time.monotonic() < deadline_s:
            with suppress(Py4JJavaError):  # before it is closed: it has no source
                closed = ask(2, "closing")["closed"]
        assert "closing" in closed
        assert not is_closed.done(), "its workers are still there"
        ask(3)
        assert is_closed.result(10)
    ask(4)
    said = [report["said"]["number"] for report in json.loads(run.look())["reports"]]
    assert said == [2, 3], "what comes earlier or later is nobody's"
