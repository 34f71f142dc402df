"""Fixtures for pytest, which finds them wherever Penstock is installed.

Penstock is imported when a test asks for one of them, not whenever pytest starts.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.testing.collector import Collector
    from penstock.testing.kafka_broker import KafkaBroker
    from penstock.testing.result import Result


@pytest.fixture
def penstock_run() -> "Callable[..., Result]":
    """`penstock.testing.run`: a flow in this process, without Spark, on a virtual clock."""
    from penstock.testing.in_process import run

    return run


@pytest.fixture
def penstock_collector() -> "Iterator[Collector]":
    """A sink for a flow on Spark, whose items the test can read; its files go with the test."""
    from penstock.testing.collector import Collector

    with Collector() as collector:
        yield collector


@pytest.fixture(scope="session")
def penstock_kafka() -> "Iterator[KafkaBroker]":
    """A real Kafka broker for all tests, started by the first; where it cannot be had they are skipped."""
    from penstock.testing.kafka_broker import KafkaBroker
    from penstock.testing.kafka_jars import JarsError

    try:
        started = KafkaBroker().__enter__()
    except JarsError as problem:
        pytest.skip(f"no Kafka broker: {problem}")
    yield started
    started.__exit__(None, None, None)
