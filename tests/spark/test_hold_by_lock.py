"""Who holds a checkpoint of this machine: one at a time, by name, and never a dead one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from penstock.flow.errors import FlowError
from penstock.spark import hold_by_lock
from penstock.spark.hold_by_lock import LockHold
from penstock.spark.holder import FILE, decoded, encoded, new_holder

HOLDING = """
import os, sys, time
from pathlib import Path
from penstock.spark.hold_by_lock import LockHold
from penstock.spark.holder import new_holder
hold = LockHold(Path(sys.argv[1]), new_holder("first", [os.getpid()]))
if len(sys.argv) > 2 and os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
print("held", flush=True)
time.sleep(60)
"""


def take(place: Path, flow: str = "mine", *pids: int) -> LockHold:
    return LockHold(place, new_holder(flow, pids or [os.getpid()]))


def test_another_flow_of_the_same_process_is_refused_until_it_is_released(tmp_path: Path) -> None:
    first = take(tmp_path, "first")
    with pytest.raises(FlowError) as refused:
        take(tmp_path)
    message = str(refused.value)
    assert message.startswith(f'the checkpoint {tmp_path} is held by flow "first" on ')
    assert f", process {os.getpid()}, since 2" in message
    assert message.endswith("; stop that flow first, or choose another directory")
    first.release()
    assert (tmp_path / FILE).read_text() == "", "it names nobody any more"
    second = take(tmp_path)
    first.release()
    with pytest.raises(FlowError, match='flow "mine"'):
        take(tmp_path)
    second.release()


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    def opened() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = opened()
    held = take(tmp_path)
    with pytest.raises(FlowError):
        take(tmp_path)
    held.release()
    assert opened() == before


@pytest.mark.parametrize("forks", [False, True])
def test_a_killed_holder_is_followed_at_once_also_if_it_had_forked(tmp_path: Path, forks: bool) -> None:
    arguments = [sys.executable, "-c", HOLDING, str(tmp_path), *(["forks"] if forks else [])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as holding:
        assert holding.stdout is not None
        lines = [holding.stdout.readline() for _ in range(1 + forks)]
        children = [int(line) for line in lines if line.strip().isdecimal()]
        try:
            with pytest.raises(FlowError, match=rf'flow "first".*process {holding.pid}'):
                take(tmp_path)
            holding.send_signal(signal.SIGKILL)
            holding.wait()
            began_s = time.monotonic()
            take(tmp_path).release()
            assert time.monotonic() - began_s < 5
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)


def test_the_spark_of_a_killed_driver_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "0.5"]) as spark:
        (tmp_path / FILE).write_text(encoded(new_holder("killed", [spark.pid])))
        monkeypatch.setattr(hold_by_lock, "_ENDING_S", 0.1)
        with pytest.raises(FlowError, match=r'was held by flow "killed".*whose Spark has not ended yet'):
            take(tmp_path)
        spark.wait()
        take(tmp_path).release()


def test_one_that_has_just_got_the_lock_is_waited_for_until_it_says_who_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = take(tmp_path)
    dead = msgspec.structs.replace(new_holder("dead", []), processes=["1 1"])
    for unsaid in ("", "{", encoded(dead)):
        (tmp_path / FILE).write_text(unsaid)
        monkeypatch.setattr(hold_by_lock, "_SAY_WHO_S", 0.05)
        with pytest.raises(FlowError, match="is held by"):
            take(tmp_path)
    held.release()


def test_what_a_holder_says_is_read_as_it_was_written() -> None:
    holder = new_holder("f", [os.getpid()])
    assert holder.is_near
    assert holder.is_alive
    assert decoded(encoded(holder) + "7\n") == holder
    assert decoded(None) is None
    assert decoded("nonsense") is None
