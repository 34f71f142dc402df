"""Waiting for a flow to run again, and being told that it is no longer wanted."""

import threading
import time

from penstock.spark.patience import Patience


def test_without_an_end_it_waits_as_long_as_it_is_asked_to() -> None:
    patience = Patience()
    began_s = time.monotonic()
    assert patience.wait(0.0)
    assert patience.wait(0.05)
    assert time.monotonic() - began_s >= 0.05


def test_an_end_that_comes_first_ends_the_wait() -> None:
    patience = Patience()
    patience.end_in(0.05)
    assert patience.wait(0.0), "there is time left"
    assert not patience.wait(60)
    assert not patience.wait(0.0)


def test_whoever_waits_hears_of_an_earlier_end_and_a_later_one_changes_nothing() -> None:
    patience = Patience()
    patience.end_in(60)
    threading.Timer(0.05, patience.end_in, [0]).start()
    assert not patience.wait(60)
    patience.end_in(60)
    assert not patience.wait(0)
