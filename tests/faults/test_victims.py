"""Whom a fault hits."""

import subprocess
import sys

from penstock.faults.victims import kill_one

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_one_that_ended_by_itself_is_passed_over() -> None:
    over, there = subprocess.Popen([sys.executable, "-c", ""]), subprocess.Popen(SLEEP)
    over.wait()
    coming = iter([over.pid, there.pid])
    kill_one(lambda: next(coming))
    assert there.wait() == -9
    assert list(coming) == []
