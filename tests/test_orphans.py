"""A child that is told to goes with its parent, however that one ends."""

import signal
import subprocess
import sys
import time

import pytest

from penstock import processes

PARENT = """
import os, subprocess, sys, time
from functools import partial
from penstock.orphans import end_with

child = subprocess.Popen(["sleep", "60"], preexec_fn=partial(end_with, os.getpid()))
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        who = processes.identity(int(parent.stdout.readline()))
        assert who is not None
        parent.send_signal(number)
    deadline_s = time.monotonic() + 10
    while processes.is_alive(who) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert not processes.is_alive(who)


def test_one_whose_parent_has_ended_already_ends_at_once() -> None:
    ended = [sys.executable, "-c", "from penstock.orphans import end_with; end_with(1 << 22); print('lives')"]
    ran = subprocess.run(ended, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
