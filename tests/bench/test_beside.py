"""Processes that are asked at the same time."""

from typing import Any

import pytest

from penstock.bench.beside import Beside
from penstock.bench.harness import median_ratio
from penstock.bench.keyed import key_text
from penstock.bench.own_session import SessionEndedError


def test_each_process_answers_what_it_was_asked() -> None:
    with Beside(key_text, 2) as both:
        assert both.at_once([1, 2]) == ["key 1", "key 2"]
        assert both.alone(3) == "key 3"
        wrong: Any = "one"
        with pytest.raises(SessionEndedError, match="Expected `int`, got `str`"):
            both.at_once([1, wrong])


def test_ratios_are_those_within_turns() -> None:
    assert median_ratio([2.0, 30.0, 4.0], [1.0, 10.0, 2.0]) == 2.0
    assert median_ratio([2.0, None, 9.0], [1.0, 1.0, None]) == 2.0
    assert median_ratio([], []) is None
