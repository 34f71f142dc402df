"""Settings for all tests, and what several directories of them share."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from penstock.testing.kafka_broker import KafkaBroker
from penstock.testing.kafka_jars import JarsError
from tests.kafka_cluster import PASSWORD

# The machines tests run on are shared and slow now and then: a time limit per example would fail at random.
# The same examples each time; with PENSTOCK_RANDOM others.
settings.register_profile("penstock", deadline=None, derandomize="PENSTOCK_RANDOM" not in os.environ)
settings.load_profile("penstock")


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A real Kafka broker, for as long as tests run; nobody else may stop it."""
    try:
        started = KafkaBroker(password=PASSWORD, tls=True, silent_s=60).__enter__()
    except JarsError as problem:
        pytest.skip(f"no Kafka broker: {problem}")
    yield started
    started.__exit__(None, None, None)
