"""Policies that enter the arena from outside."""

import os
import time
from pathlib import Path

from penstock.policy.decision import Decision
from penstock.policy.keep import scale
from penstock.stats.snapshot import Snapshot


class Three:
    """Three of everything."""

    name = "three"

    def initial_memory(self) -> None:
        return

    def decide(self, snapshot: Snapshot, memory: None) -> tuple[Decision, None]:
        return scale(snapshot, self.name, dict.fromkeys(snapshot.elastic_tasks(), 3), []), memory


class Raises(Three):
    def decide(self, snapshot: Snapshot, memory: None) -> tuple[Decision, None]:
        raise ZeroDivisionError("by hand")


class Stays(Three):
    """Tells who it is and stays."""

    def decide(self, snapshot: Snapshot, memory: None) -> tuple[Decision, None]:
        Path(os.environ["ARENA_PID"]).write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(60.0)
        raise AssertionError("nobody ended it")


class NoPolicy:
    pass


class WantsMore(Three):
    def __init__(self, more: int) -> None:
        self.more = more
