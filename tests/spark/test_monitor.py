"""The thread that watches a flow never ends without a word."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.spark.monitor import Monitor


@pytest.mark.parametrize("problem", [OSError("Java is gone"), SystemExit(1), KeyboardInterrupt()])
def test_whatever_ends_it_the_flow_is_told(problem: BaseException) -> None:
    told: list[BaseException] = []

    class Raises:
        def look(self) -> None:
            raise problem

    nobody = cast("Any", None)
    monitor = Monitor(
        cast("Any", Raises()),
        cast("Any", SimpleNamespace(add=None)),
        nobody,
        nobody,
        nobody,
        threading.Event(),
        on_ended=nobody,
        on_exhausted=nobody,
        on_lost=told.append,
        tell=nobody,
    )
    monitor.start()
    monitor.join(10)
    assert told == [problem]
