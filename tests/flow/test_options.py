"""Checks of single settings: any value is taken or refused with the place it was given at."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import FlowError
from penstock.flow.options import (
    KNOWN,
    check_known,
    checked_memory,
    checked_outputs,
    checked_parallelism,
    checked_positive_ms,
    checked_timeout_ms,
    declared_by,
)
from penstock.flow.parallelism import fixed

anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@given(anything)
def test_parallelism(value: Any) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        assert checked_parallelism(value, "here") == fixed(value)
    else:
        with pytest.raises(FlowError, match=r"^here: parallelism must be "):
            checked_parallelism(value, "here")


@given(st.lists(st.from_regex("[a-z]{1,2}", fullmatch=True)))
def test_outputs(names: list[str]) -> None:
    if names and len(set(names)) == len(names):
        assert checked_outputs(names, "here") == tuple(names)
    else:
        with pytest.raises(FlowError, match=r"^here: output"):
            checked_outputs(names, "here")


@given(anything)
def test_positive_durations(value: Any) -> None:
    try:
        found_ms = checked_positive_ms(value, "here: every")
    except FlowError as refused:
        message = str(refused)
    else:
        message = "here: every: taken"
        assert found_ms > 0
    assert message.startswith("here: every: ")


@given(anything)
def test_memory(value: Any) -> None:
    try:
        found = checked_memory(value, "here")
    except FlowError as refused:
        message = str(refused)
    else:
        message = "here: memory: taken"
        assert found >= 10_000_000
    assert message.startswith("here: memory: ")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("5 MB", "here: memory: '5 MB' is less than the 10 MB that a worker itself may need"),
        ("lots", "here: memory: 'lots' is not an amount of memory; "),
    ],
)
def test_memory_that_is_refused(value: str, words: str) -> None:
    with pytest.raises(FlowError) as caught:
        checked_memory(value, "here")
    assert str(caught.value).startswith(words)


def test_timeouts() -> None:
    assert checked_timeout_ms("5 s", "here") == 5000
    with pytest.raises(FlowError, match=r"^here: timeout: '99 ms' is less than 100 ms; it is for"):
        checked_timeout_ms("99 ms", "here")
    with pytest.raises(FlowError, match=r"^here: timeout: 'soon' is not a duration"):
        checked_timeout_ms("soon", "here")


def test_class_attributes_are_settings_but_methods_are_not() -> None:
    class Odd:
        latency_kind = "read_write"

        def every(self) -> None: ...

    assert declared_by(Odd) == {"latency_kind": "read_write"}


def test_known_settings() -> None:
    check_known(dict.fromkeys(KNOWN), "here")
    with pytest.raises(FlowError, match=r"^here: unknown setting"):
        check_known({"Name": "x"}, "here")
