"""Commits by epoch marks: the thread of the driver that orders epochs and appends what comes of them."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import msgspec

from penstock.epochs.log import Log
from penstock.epochs.output import Sinks
from penstock.epochs.reports import Done, Epochs
from penstock.epochs.retention import collect
from penstock.observe.reported import CommitTotals
from penstock.spark.bridge import Bridge

_LOOK_MS = 100
_WAIT_MS = 1_000
_END_S = 10.0
_log = logging.getLogger("penstock")


class _Reported(msgspec.Struct, frozen=True):
    done: Done


class _Heard(msgspec.Struct, frozen=True):
    """What the tasks reported, and the epoch with which the batch ends, 0 while it does not."""

    end: int
    reports: list[_Reported]


@dataclass(frozen=True, slots=True)
class _Open:
    """An epoch that is under way, and since when."""

    epoch: int
    ordered_s: float


class Moving:
    """Keys are to change hands. `tell` makes known at the mark of which epoch, before that is ordered."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.over = threading.Event()
        """The epoch is committed, so all of it is where it is to be."""
        self._tell = tell
        self._lock = threading.Lock()
        self._withdrawn = False
        self.epoch: int | None = None

    def tell(self, epoch: int) -> bool:
        """Make it known; False if it is not wanted any more."""
        with self._lock:
            if not self._withdrawn:
                self._tell(epoch)
                self.epoch = epoch
            return not self._withdrawn

    def withdraw(self) -> bool:
        """Leave it; False if it is known already, so that it will be done."""
        with self._lock:
            self._withdrawn = self.epoch is None
            return self._withdrawn


class Committing:
    """The commits of a flow; each of its runs has a thread of its own."""

    def __init__(self, bridge: Bridge, every_s: float, keep: int) -> None:
        self._bridge = bridge
        self._every_s = every_s
        self._keep = keep
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._sinks = Sinks()
        self.totals = CommitTotals()
        self.problem: Exception | None = None
        """Why nothing more can be committed in this run."""
        self.moving: Moving | None = None
        """What is to be done with the next epoch."""
        self.hastens = False
        """Whether the next epoch is not to wait for its time."""

    def hasten(self) -> None:
        """Order the next epoch when all know what was published: some of it is done behind a mark."""
        self.hastens = True
        self._bridge.wake()

    def move(self, tell: Callable[[int], None]) -> Moving:
        """Have keys change hands at the next mark, which is ordered when all know of it."""
        moving = self.moving = Moving(tell)
        self._bridge.wake()
        return moving

    def begin(self, log: Log, tasks: Sequence[str], sinks: Sinks) -> None:
        """A run has begun at this entry of the log; `tasks` are all of it, `sinks` those that commit."""
        self.end()
        self._over = threading.Event()
        self._sinks = sinks
        self.problem = None
        self.moving = None
        self.hastens = False
        commits = _Commits(self, self._bridge, log, Epochs(tasks, log.entry), sinks, self._over)
        self._thread = threading.Thread(
            target=self._run, args=(commits,), name="penstock-commits", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """The run is over."""
        self._over.set()
        if self._thread is not None and self._thread.is_alive():
            self._bridge.wake()
            self._thread.join(_END_S)
        self._sinks.close()

    def _run(self, commits: "_Commits") -> None:
        try:
            commits.run(self._every_s, self._keep)
        except Exception as problem:  # noqa: BLE001 - a full disk, another driver, a JVM that goes
            if self._over.is_set():
                return
            _log.warning("commits have ended: %s", problem)
            self.problem = problem
            self._bridge.end_query()  # whoever watches it finds out, and asks for the problem


class _Commits:
    """Those of one run."""

    def __init__(
        self,
        of: Committing,
        bridge: Bridge,
        log: Log,
        epochs: Epochs,
        sinks: Sinks,
        over: threading.Event,
    ) -> None:
        self._of = of
        self._bridge = bridge
        self._log = log
        self._epochs = epochs
        self._sinks = sinks
        self._over = over
        self._open: _Open | None = None

    def run(self, every_s: float, keep: int) -> None:
        """Until the run is over."""
        next_s, end, end_s = time.monotonic() + every_s, 0, 0.0
        while not self._over.is_set():
            wait_ms, missing = self._wait_ms(next_s), self._missing(end)
            heard = msgspec.json.decode(self._bridge.await_done(end, missing, wait_ms), type=_Heard)
            for report in heard.reports:
                self._epochs.hear(report.done)
            if heard.end != end:
                end, end_s = heard.end, time.monotonic()
            if end and self._epochs.verdict(end):
                self._commit(_Open(end, end_s), keep, batch_is_over=True)
            elif self._open is not None and (is_valid := self._epochs.verdict(self._open.epoch)) is not None:
                if is_valid:
                    self._commit(self._open, keep, batch_is_over=False)
                else:
                    self._void()
            elif self._open is None and not end and self._may_order(next_s) and self._order():
                next_s = max(next_s + every_s, time.monotonic())

    def _wait_ms(self, next_s: float) -> int:
        """Each look at what is new takes CPU: none is needed until it is time, as who wants more wakes it."""
        left_ms = ceil((next_s - time.monotonic()) * 1000)
        is_idle = self._of.moving is None and not self._of.hastens
        return min(left_ms, _WAIT_MS) if is_idle and self._open is None and left_ms > 0 else _LOOK_MS

    def _missing(self, end: int) -> int:
        """How many reports there must be before there is anything to do."""
        open_epoch = end or (0 if self._open is None else self._open.epoch)
        return self._epochs.missing(open_epoch) if open_epoch else 1

    def _may_order(self, next_s: float) -> bool:
        """Whether it is time: one in which keys change hands comes as soon as everybody knows of it."""
        moving = self._of.moving
        if moving is None and self._of.hastens:
            return self._bridge.await_adopted(_LOOK_MS)
        if moving is None:
            return time.monotonic() >= next_s
        if moving.epoch is None:
            epoch = self._bridge.next_epoch()
            if epoch and not moving.tell(epoch):
                self._of.moving = None
            if moving.epoch is None:
                return False
        return self._bridge.await_adopted(_LOOK_MS)

    def _order(self) -> bool:
        """Whether sources read, so that there is another epoch."""
        epoch = self._bridge.order_epoch(quiet=self._epochs.wants_quiet)
        if epoch:
            self._open = _Open(epoch, time.monotonic())
            self._of.hastens = False
        return epoch > 0

    def _void(self) -> None:
        assert self._open is not None
        moving = self._of.moving
        if moving is not None and moving.epoch == self._open.epoch:
            raise RuntimeError("an epoch in which keys change hands is void")  # who waits would for ever
        self._epochs.void()
        self._bridge.epoch_over(self._open.epoch, committed=False)
        self._of.totals = self._of.totals.voided()
        self._open = None

    def _commit(self, one: _Open, keep: int, *, batch_is_over: bool) -> None:
        """The entry makes it true; then its output is seen, and everybody hears of it."""
        entry = self._epochs.entry(one.epoch)
        self._log.append(entry)
        self._sinks.commit(entry)
        self._epochs.committed(entry, batch_is_over=batch_is_over)
        self._epochs.answered()
        if batch_is_over and entry.handles:  # the flow may end here, and be started without that sink
            self._log.append(self._epochs.newest)
        self._open = None
        self._bridge.epoch_over(one.epoch, committed=True)
        moving = self._of.moving
        if moving is not None and moving.epoch is not None and moving.epoch <= one.epoch:
            self._of.moving = None
            moving.over.set()
        now_s = time.monotonic()
        took_ms = (now_s - one.ordered_s) * 1000
        self._of.totals = self._of.totals.committed(one.epoch, now_s, took_ms, entry.state_bytes())
        collect(self._log, keep=keep)
