"""The examples in the documentation of the public functions."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["penstock.durations", "penstock.flow.decorator", "penstock.flow.flow"])
def test_examples(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
