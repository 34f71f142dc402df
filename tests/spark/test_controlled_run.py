"""A run of bench control on real Spark, a few seconds long, with a bound that changes on the way."""

import time
from statistics import median

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.apps.primetest import prime_flow
from penstock.bench.control_run import controlled_run
from penstock.control.control_plan import ControlPlan
from penstock.io.schedule import constant
from penstock.spark.job import Job
from penstock.testing import Ledger

pytestmark = pytest.mark.spark


def tighten(job: Job) -> None:
    time.sleep(3)
    with pytest.raises(ps.FlowError, match='has no constraint "c2"; its constraints are c1'):
        job.set_bound("c2", "5 ms")
    job.set_bound("c1", "200 ms")
    time.sleep(3)


def test_everything_about_a_controlled_run_is_known(spark: SparkSession) -> None:
    with Ledger() as ledger:
        flow = prime_flow(constant(300), ledger, testers=ps.elastic(1, 4, initial=2, pool=4), bound="500 ms")
        one = controlled_run(flow, ledger, ControlPlan("nephele", interval="1 s"), tighten)
    assert one.problem is None
    assert one.harm() == {"lost": 0, "duplicated": 0, "restarts": 0}
    assert one.batches == 0
    assert len(one.decisions) >= len(one.cycles) >= 4
    bounds = [cycle.snapshot.constraints[0].latency_ms for cycle in one.cycles]
    assert (bounds[0], bounds[-1]) == (500.0, 200.0)
    mean_ms = one.mean_ms(1.0, 4.0)
    assert mean_ms is not None
    assert mean_ms > 0
    assert one.replica_seconds("tester", 1.0, 4.0) >= 3.0
    rates = [cycle.snapshot.tasks["numbers"].rate_total for cycle in one.cycles[2:]]
    assert median([rate for rate in rates if rate is not None]) == pytest.approx(300, rel=0.2)
