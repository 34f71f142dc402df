"""How often, after what and after how long a body is asked again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import Flow, FlowError, Retries, retry
from tests.flow.random_flows import Partitioned, ignore


@given(st.integers(1, 1000), st.floats(0.001, 1e6), st.floats(0.001, 1e6), st.integers(1, 5000))
def test_pauses_double_up_to_the_longest(times: int, one: float, two: float, tried: int) -> None:
    first_s, longest_s = sorted((one, two))
    retries = retry(times, first=first_s, longest=longest_s)
    assert retries.pause_ms(1) == 1000 * first_s
    assert retries.pause_ms(tried + 1) == min(2 * retries.pause_ms(tried), 1000 * longest_s)
    assert retries.allow(ValueError(), tried) == (tried <= times)


def test_only_some_errors_are_tried_again() -> None:
    retries = retry(3, on=(OSError, LookupError))
    assert retries.allow(ConnectionError(), 1)
    assert retries.allow(KeyError(), 3)
    assert not retries.allow(ValueError(), 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"times": 0}, "retry(...): times must be a whole number of at least 1, not 0"),
        ({"times": True}, "retry(...): times must be a whole number of at least 1, not True"),
        ({"on": "OSError"}, "retry(...): on takes exceptions such as ConnectionError, not 'OSError'"),
        (
            {"on": KeyboardInterrupt},
            "retry(...): on takes exceptions such as ConnectionError, not <class 'KeyboardInterrupt'>",
        ),
        ({"on": ()}, "retry(...): on is empty; leave it out to try again after any exception"),
        ({"first": "1 min"}, "retry(...): longest '10 s' is shorter than first '1 min'; swap the two"),
        ({"first": -1}, "retry(...): first: -1 is a negative duration; it must be 0 or more"),
    ],
)
def test_refusals(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(FlowError) as refused:
        retry(**{"times": 1, **settings})
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0, None),
        (None, None),
        (3, Retries(3, 100.0, 10_000.0)),
        (retry(2, first="1 s", on=OSError), Retries(2, 1000.0, 10_000.0, (OSError,))),
    ],
)
def test_a_task_says_how_often(given: Any, expected: Retries | None) -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="source").map(ignore, name="a", retries=given).sink(ignore, name="out")
    assert flow.graph().task("a").retries == expected


@pytest.mark.parametrize("wrong", [-1, True, "3", 1.5])
def test_a_task_refuses_what_is_no_number_of_tries(wrong: Any) -> None:
    with pytest.raises(FlowError) as refused:
        Flow("f").source(Partitioned(1), name="source").map(ignore, name="a", retries=wrong)
    expected = f'task "a" of flow "f": retries must be a whole number or retry(...), not {wrong!r}'
    assert str(refused.value) == expected


def test_they_are_explained() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1)).sink(ignore, retries=retry(2, on=OSError))
    assert "; retries 2 on OSError, after 100 ms up to 10 s\n" in flow.explain()
