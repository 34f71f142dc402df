"""One number of replicas out of several proposals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.agreement import AgreementRule, agreed

PROPOSALS = [{"a": 4, "b": 1}, {"a": 9, "b": 2}, {"a": 5, "b": 3}]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("last", {"a": 5, "b": 3}), ("max", {"a": 9, "b": 3}), ("median", {"a": 5, "b": 2})],
)
def test_rules(rule: AgreementRule, expected: dict[str, int]) -> None:
    assert agreed(PROPOSALS, rule) == expected


def test_of_two_middle_values_the_larger_is_taken() -> None:
    assert agreed([{"a": 2}, {"a": 8}], "median") == {"a": 8}


@given(
    st.lists(st.fixed_dictionaries({"a": st.integers(1, 99)}), min_size=1), st.sampled_from(["max", "median"])
)
def test_order_does_not_matter_for_max_and_median(
    proposals: list[dict[str, int]], rule: AgreementRule
) -> None:
    assert agreed(proposals, rule) == agreed(proposals[::-1], rule)
