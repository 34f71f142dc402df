"""Fakes and helpers for the tests of your own flows."""

from penstock.testing.collector import Collector
from penstock.testing.engine import FakeEngine
from penstock.testing.given import at
from penstock.testing.in_process import run
from penstock.testing.kafka_broker import KafkaBroker
from penstock.testing.ledger import Ledger, stamped
from penstock.testing.result import Arrival, Result

__all__ = ["Arrival", "Collector", "FakeEngine", "KafkaBroker", "Ledger", "Result", "at", "run", "stamped"]
