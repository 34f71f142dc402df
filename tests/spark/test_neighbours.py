"""Several flows in one process, and what their processes listen on."""

import os
import re

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import processes
from penstock.faults.leftovers import listening
from penstock.flow.spark_conf import LINKS
from penstock.spark.session import all_slots
from penstock.spark.session_conf import is_one_process
from penstock.testing.collector import Collector
from tests.spark.items import assert_exactly_once, numbered
from tests.spark.test_crashes import same, wait_for

pytestmark = pytest.mark.spark

LOOPBACK = re.compile(r"^(0100007F|0{24}0100007F|0000000000000000FFFF00000100007F|0{31}1):")


def small(name: str, collector: Collector, pool: int = 2) -> ps.Flow:
    flow = ps.Flow(name)
    source = flow.source(numbered(3000, rate=1000), name="numbers")
    source.map(same, parallelism=ps.elastic(1, pool, pool=pool)).sink(collector, name="out")
    return flow


def test_two_flows_share_a_session_and_a_third_is_refused_by_name(
    spark: SparkSession, collector: Collector
) -> None:
    slots = all_slots(spark)
    others = Collector()
    first = ps.run(small("first", collector))
    second = ps.run(small("second", others))
    assert (first.slots, second.slots) == (slots - 4, slots - 4)
    with pytest.raises(ps.FlowError) as refused:
        ps.run(small("third", collector, pool=slots - 6))
    assert str(refused.value) == (
        f'flow "third" needs 1 for numbers, {slots - 6} for same, 1 for out: {slots - 4} task slots at the'
        f" same time, but of Spark's {slots} there are 8 held"
        ' (4 by flow "first", 4 by flow "second"); start Spark with room for all flows before the first,'
        f" penstock.session(slots={slots + 4}), or run this one in a process of its own"
    )
    assert first.await_termination(60)
    assert second.await_termination(60)
    assert_exactly_once(collector.items(), 3000)
    assert_exactly_once(others.items(), 3000)
    assert first.slots == slots
    others.close()


def test_what_a_running_flow_listens_on(spark: SparkSession, collector: Collector) -> None:
    """All on the loopback interface, also between executors, and inside one process nowhere.

    Spark's shuffle would listen everywhere.
    """
    before = heard()
    job = ps.run(small("heard", collector))
    wait_for(lambda: len(collector.items()) > 300)
    by_process = heard()
    is_sparks = os.environ.get("PENSTOCK_TEST_SHUFFLE", LINKS) != LINKS
    senders = 1 + 2 if is_sparks else 0  # the source, and the pool of its receiver
    assert job.await_termination(60)
    workers = {pid for task in job.metrics().tasks.values() for pid in task.processes}
    assert not [pid for pid in workers if by_process.get(pid)]
    beyond = [place for places in by_process.values() for place in places if not LOOPBACK.match(place)]
    assert len(beyond) == senders
    if is_one_process(spark.sparkContext.master or ""):
        opened = {place for places in by_process.values() for place in places}
        assert opened.difference(*before.values()) == set(beyond)


def heard() -> dict[int, list[str]]:
    """Where this process and all below it listen."""
    return {pid: listening(pid) for pid in processes.tree(os.getpid())}
