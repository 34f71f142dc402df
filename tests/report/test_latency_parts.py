"""The parts of a latency add up to it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.measured import sequence_latency_ms
from penstock.report.latency_parts import Part, latency_parts
from tests.report.recordings import snapshot


def test_parts_by_hand() -> None:
    one = snapshot(wait_ms=4.0)
    assert latency_parts(one, one.constraints[0]) == [
        Part("work", "batching", 1.0),
        Part("work", "transport", 2.0),
        Part("work", "queue", 4.0),
        Part("work", "service", 1.0),
    ]


def test_what_was_not_measured_has_no_parts() -> None:
    one = snapshot(wait_ms=None)
    assert latency_parts(one, one.constraints[0]) is None


@given(st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0, 1e3))
def test_parts_add_up_and_none_is_negative(
    latency_ms: float, batch_ms: float, wait_ms: float, work_ms: float
) -> None:
    one = snapshot()
    stream = msgspec.structs.replace(one.streams[0], latency_ms=latency_ms, output_batch_ms=batch_ms)
    work = msgspec.structs.replace(one.tasks["work"], queue_wait_ms=wait_ms, latency_ms=work_ms)
    one = msgspec.structs.replace(one, streams=[stream, one.streams[1]], tasks={**one.tasks, "work": work})
    parts = latency_parts(one, one.constraints[0])
    assert parts is not None
    assert min(part.ms for part in parts) >= 0
    assert sum(part.ms for part in parts) == pytest.approx(sequence_latency_ms(one, one.constraints[0]))
