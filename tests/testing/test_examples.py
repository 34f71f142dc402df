"""The examples in the docstrings of the helpers for tests."""

import doctest
from types import ModuleType

import pytest

from penstock.testing import given, in_process, virtual_clock


@pytest.mark.parametrize("module", [given, in_process, virtual_clock], ids=lambda module: module.__name__)
def test_examples_in_docstrings(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
