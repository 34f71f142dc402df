"""The controller of a running flow: a thread of the driver that never holds up the data."""

import logging
import threading
import time
from collections import deque
from typing import Protocol

import msgspec

from penstock.control.by_hand import Mode
from penstock.control.control_plan import ControlPlan
from penstock.control.decision_log import Entry
from penstock.control.events import Eventful, Noted
from penstock.control.flow_engine import FlowEngine, Steered
from penstock.control.live_policy import is_built_in
from penstock.control.loop import Controller, Cycle
from penstock.control.notices import Notices
from penstock.control.recording import Recorder, RecordingError
from penstock.control.recording_header import RecordingHeader, installed_versions
from penstock.control.status import DECISIONS_KEPT, FlowStatus, status_path, write_status
from penstock.durations import Duration
from penstock.flow.errors import FlowError

_CYCLES_KEPT = 1000
_END_S = 1.0
_FEWEST_REPORTS = 2
_USUAL_REPORT_S = 1.0
_log = logging.getLogger("penstock.control")


class Controlled(Steered, Eventful, Protocol):
    """The handle of a running flow, as its controller needs it."""

    def tell(self, notice: str) -> None:
        """Let somebody hear of it."""
        ...

    def set_measure_every(self, every: Duration) -> None:
        """Have every worker report that often."""
        ...


class Control:
    """Drives a job with a policy. When it dies, the job keeps its last configuration."""

    def __init__(self, job: Controlled, plan: ControlPlan) -> None:
        self.problem: str | None = None
        self._job = job
        self._plan = plan
        self._cycles: deque[Cycle] = deque(maxlen=_CYCLES_KEPT)
        self._notices = Notices()
        self._noted: Noted | None = Noted()
        beside = None if plan.recording is None else status_path(plan.recording)
        self._status_files = [place for place in (beside, plan.status) if place is not None]
        self._engine = FlowEngine(
            job,
            plan.interval_s,
            shrink_pools_after_s=plan.shrink_pools_after_s,
            only_recommend=plan.recommend,
        )
        if plan.interval_s < _FEWEST_REPORTS * _USUAL_REPORT_S:
            # With one report per interval and worker, some intervals would see none and others two.
            job.set_measure_every(plan.interval_s / _FEWEST_REPORTS)
        relays = sum(layer.relay is not None for layer in job.layout.layers)
        slots = job.slots - relays
        policy = plan.create_policy(slots)
        header = RecordingHeader(
            flow=job.layout.graph.name,
            policy=plan.name,
            built_in=is_built_in(plan.policy),
            settings=plan.all_settings,
            recommend=plan.recommend,
            slots=slots,
            interval_s=plan.interval_s,
            started_at_s=time.time(),
            versions=installed_versions(),
        )
        self._recorder = None if plan.recording is None else Recorder(plan.recording, header)
        self._controller = Controller(
            self._engine, policy, time.time, self._recorder, monotonic=time.monotonic
        )
        self._thread = threading.Thread(target=self._drive, name="penstock-control", daemon=True)
        self._thread.start()

    def cycles(self) -> list[Cycle]:
        """What was observed and decided, oldest first."""
        return list(self._cycles)

    def decisions(self) -> list[Entry]:
        """What was decided and what came of it, oldest first."""
        return self._controller.log.entries()

    @property
    def applies(self) -> bool:
        """Whether what is decided is carried out."""
        return not self._engine.only_recommend

    @property
    def mode(self) -> Mode:
        """Whether decisions are carried out, only recommended, or not made."""
        if not self._controller.asks:
            return "off"
        return "on" if self.applies else "recommend"

    def set_mode(self, mode: Mode) -> None:
        """From the next decision on; one that was started to recommend never carries anything out."""
        if mode == "on" and self._plan.recommend:
            raise FlowError(
                f'flow "{self._job.layout.graph.name}" was started to be given recommendations only, without'
                " the guards of decisions that are carried out; start it again without --recommend"
            )
        self._engine.only_recommend = mode != "on"
        self._controller.asks = mode != "off"

    def numbered(self, entry: Entry) -> Entry:
        """What somebody decided by hand, with the number of the interval of now; it is recorded."""
        entry = msgspec.structs.replace(entry, number=self._controller.number)
        if self._recorder is not None:
            self._recorder.write_decision(entry)
        return entry

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the job, and with it the control, is over."""
        self._thread.join(timeout_s)

    def _drive(self) -> None:
        self._show()
        self._record_events()
        try:
            for cycle in self._controller.cycles():
                self._cycles.append(cycle)
                for notice in self._notices.of(cycle):
                    self._job.tell(notice)
                self._record_events()
                self._show()
        except Exception as problem:  # noqa: BLE001 - whatever it is, the flow goes on
            if not self._job.await_end(_END_S):  # a flow that ends may take Spark away while it is asked
                self.problem = (
                    f"the controller has stopped, the flow keeps its last configuration: {problem!r}"
                )
                _log.exception("flow %s: its controller failed", self._job.layout.graph.name)
                self._job.tell(self.problem)
        finally:
            self._controller.close()
        self._show()
        self._job.await_end(None)
        self._record_events()
        if self._recorder is not None:
            self._recorder.close()
        self._show()

    def _record_events(self) -> None:
        """What has happened since the last time; a file that cannot be written is told once and given up."""
        if self._recorder is None or self._noted is None:
            return
        try:
            for event in self._noted.news(self._job):
                self._recorder.write_event(event)
        except (OSError, RecordingError) as problem:
            self._noted = None
            _log.warning("flow %s: its events are not recorded: %s", self._job.layout.graph.name, problem)

    def status(self) -> FlowStatus:
        """The flow and its controller at a glance."""
        plan, status = self._plan, self._job.status
        return FlowStatus(
            flow=self._job.layout.graph.name,
            state=status.state,
            message=status.message,
            policy=plan.name,
            applies=self.applies,
            mode=self.mode,
            interval_s=plan.interval_s,
            at_s=time.time(),
            problem=self.problem,
            snapshot=self._cycles[-1].snapshot if self._cycles else None,
            decisions=self.decisions()[-DECISIONS_KEPT:],
        )

    def _show(self) -> None:
        """Renew the status files; one that cannot be written is told once and given up."""
        for place in list(self._status_files):
            try:
                write_status(place, self.status())
            except OSError as error:
                self._status_files.remove(place)
                _log.warning("%s cannot be written: %s", place, error.strerror)
