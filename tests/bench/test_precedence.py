"""Clients that go before others, where the machine lets them."""

import gc
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from penstock.bench import precedence

SAY = """
import os, threading
from penstock.bench.precedence import take_precedence
said = take_precedence()
kinds = []
thread = threading.Thread(target=lambda: kinds.append(os.sched_getscheduler(0)))
thread.start()
thread.join()
print(said, kinds[0], os.getpriority(os.PRIO_PROCESS, 0))
"""


def test_it_says_what_it_was_given_and_threads_inherit_it() -> None:
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-c", SAY], env=path, capture_output=True, text=True, check=True)
    said, kind, nice = run.stdout.rsplit(maxsplit=2)
    if said == precedence.REAL_TIME:
        assert int(kind) == os.SCHED_FIFO
    else:
        assert int(kind) != os.SCHED_FIFO
        assert (int(nice) == -20) == (said == precedence.NICE)


@pytest.mark.parametrize(("nice_too", "said"), [(False, precedence.NICE), (True, precedence.NONE)])
def test_without_permission_it_is_told(
    nice_too: bool,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(precedence, "_LIBC", SimpleNamespace(prctl=lambda *_: 0))
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "setpriority", refuse if nice_too else lambda *_: None)
    assert precedence.take_precedence() == said
