"""What counts as measured."""

import math

import msgspec
import pytest

from penstock.policy.measured import (
    finite,
    largest_utilization,
    output_batch_ms,
    queue_wait_ms,
    sequence_latency_ms,
    task_latency_ms,
    utilization,
)
from tests.policy.snapshots import pipeline, prime_test


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_only_finite_numbers_count(value: float | None) -> None:
    assert finite(value) is None
    assert finite(0.0) == 0.0


def test_task_latency() -> None:
    snapshot = prime_test(latency_ms=None)
    assert task_latency_ms(snapshot.tasks["prime"]) == 0.08
    assert task_latency_ms(snapshot.tasks["source"]) == 0.0
    assert task_latency_ms(snapshot.tasks["sink"]) is None
    assert task_latency_ms(prime_test(latency_ms=None, latency_kind="read_write").tasks["prime"]) is None


def test_utilization_is_the_larger_of_offered_load_and_busy_share() -> None:
    assert utilization(prime_test(utilization=0.95).tasks["prime"]) == 0.95
    assert utilization(prime_test(interarrival_ms=0.04).tasks["prime"]) == 2.0
    assert utilization(prime_test(interarrival_ms=None).tasks["prime"]) == 0.6
    assert utilization(prime_test(interarrival_ms=None, utilization=None).tasks["prime"]) is None


def test_the_busiest_replica() -> None:
    assert largest_utilization(prime_test().tasks["prime"]) == 0.7
    assert largest_utilization(prime_test(utilization_max=None).tasks["prime"]) is None
    alone = prime_test(utilization_max=None, utilization=0.9, parallelism=1).tasks["prime"]
    assert largest_utilization(alone) == 0.9


def test_queue_wait_of_several_inputs_must_be_measured() -> None:
    snapshot = prime_test(queue_wait_ms=None)
    assert queue_wait_ms(snapshot, "prime") == 8.0
    assert queue_wait_ms(snapshot, "source") == 0.0
    second = msgspec.structs.replace(snapshot.streams[0], origin="source.late")
    both = msgspec.structs.replace(snapshot, streams=[*snapshot.streams, second])
    assert queue_wait_ms(both, "prime") is None


def test_batching_delay_of_a_stream_that_ships_at_once() -> None:
    stream = prime_test(stream={"output_batch_ms": None, "batch_lifetime_ms": 0}).streams[0]
    assert output_batch_ms(stream) == 0.0
    assert output_batch_ms(prime_test(stream={"output_batch_ms": None}).streams[0]) is None


def test_sequence_latency_needs_every_element() -> None:
    snapshot = pipeline([0.1, 0.1])
    assert sequence_latency_ms(snapshot, snapshot.constraints[0]) == 2 * 2.0 + 3 * 4.0
    gap = prime_test(stream={"latency_ms": None})
    assert sequence_latency_ms(gap, gap.constraints[0]) is None
