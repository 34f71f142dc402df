"""Fakes and helpers for the tests of your own flows."""

from penstock.testing.collector import Collector
from penstock.testing.engine import FakeEngine
from penstock.testing.ledger import Ledger, stamped

__all__ = ["Collector", "FakeEngine", "Ledger", "stamped"]
