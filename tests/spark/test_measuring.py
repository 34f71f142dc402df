"""Shares and intervals of measuring: what is refused, and how."""

import pytest

from penstock.flow.errors import FlowError
from penstock.spark.changes import measuring_interval_s, sampling_share


def test_what_is_allowed() -> None:
    assert [sampling_share(share) for share in (0.0, 0.1, 1.0)] == [0.0, 0.1, 1.0]
    assert [measuring_interval_s(every) for every in ("500 ms", 1, "1 min")] == [0.5, 1.0, 60.0]


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_is_between_0_and_1(share: float) -> None:
    with pytest.raises(FlowError) as refused:
        sampling_share(share)
    assert str(refused.value) == f"a sampling rate of {share} is not between 0 and 1"


def test_reports_have_a_shortest_interval() -> None:
    with pytest.raises(FlowError) as refused:
        measuring_interval_s("400 ms")
    assert str(refused.value) == "a report every 0.4 s is more often than every 0.5 s"
