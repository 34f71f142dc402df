"""Fakes and helpers for the tests of your own flows."""

from penstock.testing.collector import Collector

__all__ = ["Collector"]
