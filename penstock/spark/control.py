"""The controller of a running flow: a thread of the driver that never holds up the data."""

import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock.control.loop import Controller, Cycle
from penstock.control.recording import Recorder
from penstock.durations import Duration, seconds
from penstock.flow.errors import FlowError
from penstock.policy.guards.compose import GuardedPolicy, guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.parameters import parse_settings
from penstock.policy.registry import create_policy, parameters_type
from penstock.spark.engine import SparkEngine
from penstock.spark.job import Job

_SHORTEST_S = 1.0
_CYCLES_KEPT = 1000


@dataclass(frozen=True)
class ControlPlan:
    """Which policy decides, with which settings, how often; checked before anything is started."""

    policy: str
    settings: tuple[str, ...] = ()
    interval: Duration = "5 s"
    apply: bool = True
    recording: Path | None = None

    def __post_init__(self) -> None:
        if self.interval_s < _SHORTEST_S:
            raise FlowError(f"an adjustment interval of {self.interval_s} s is shorter than {_SHORTEST_S} s")
        self.create_policy()

    @property
    def interval_s(self) -> float:
        """Time between two decisions."""
        return seconds(self.interval)

    def create_policy(self) -> GuardedPolicy[Any]:
        """The policy with its parameters, and all guards around it."""
        kinds: dict[str, type[msgspec.Struct]] = {
            self.policy: parameters_type(self.policy),
            "guards": GuardParameters,
        }
        groups = parse_settings(self.settings, kinds)
        own = msgspec.convert(groups["guards"], GuardParameters)
        return guarded(create_policy(self.policy, groups[self.policy]), own)


class Control:
    """Drives a job with a policy. When it dies, the job keeps its last configuration."""

    def __init__(self, job: Job, plan: ControlPlan) -> None:
        self.problem: str | None = None
        self._cycles: deque[Cycle] = deque(maxlen=_CYCLES_KEPT)
        self._recorder = None if plan.recording is None else Recorder(plan.recording)
        engine = SparkEngine(job, plan.interval_s, only_recommend=not plan.apply)
        self._controller = Controller(engine, plan.create_policy(), time.time, self._recorder)
        self._thread = threading.Thread(target=self._drive, name="penstock-control", daemon=True)
        self._thread.start()

    def cycles(self) -> list[Cycle]:
        """What was observed and decided, oldest first."""
        return list(self._cycles)

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the job, and with it the control, is over."""
        self._thread.join(timeout_s)

    def _drive(self) -> None:
        try:
            for cycle in self._controller.cycles():
                self._cycles.append(cycle)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the flow goes on
            self.problem = f"the controller has stopped, the flow keeps its last configuration: {problem!r}"
            print(f"penstock: {self.problem}", file=sys.stderr)
            traceback.print_exc()
        finally:
            if self._recorder is not None:
                self._recorder.close()
