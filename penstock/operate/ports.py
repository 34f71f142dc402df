"""What commands need of the handle of a running flow, and of who decides about it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.control.by_hand import Mode
from penstock.control.decision_log import Entry
from penstock.control.status import FlowStatus
from penstock.durations import Duration
from penstock.flow.layers import Layout
from penstock.observe.progress import Status
from penstock.observe.reported import Metrics


class Deciding(Protocol):
    """Who decides about a flow."""

    @property
    def applies(self) -> bool:
        """Whether decisions are carried out."""
        ...

    @property
    def mode(self) -> Mode:
        """Whether decisions are carried out, only recommended, or not made."""
        ...

    def set_mode(self, mode: Mode) -> None:
        """From the next decision on."""
        ...

    def status(self) -> FlowStatus:
        """What it saw and decided."""
        ...


class Drained(Protocol):
    """What was brought to its end."""

    @property
    def commit(self) -> int | None:
        """The last that is committed."""
        ...

    @property
    def items(self) -> Mapping[str, int]:
        """How many items each task still processed."""
        ...

    @property
    def took_s(self) -> float:
        """How long all of it took."""
        ...


class Operated(Protocol):
    """The handle of a running flow, as far as commands need it."""

    @property
    def layout(self) -> Layout:
        """Where everything is placed now."""
        ...

    @property
    def slots(self) -> int:
        """The task slots that it may take."""
        ...

    @property
    def status(self) -> Status:
        """What it is doing."""
        ...

    @property
    def control(self) -> Deciding | None:
        """Who decides about it."""
        ...

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """One entry per second."""
        ...

    def metrics(self) -> Metrics:
        """Totals of every task."""
        ...

    def lifetimes_ms(self) -> dict[str, float]:
        """Of the batches of each stream."""
        ...

    def adapt(
        self,
        replicas: Mapping[str, int],
        lifetimes_ms: Mapping[str, float],
        chains: Sequence[Sequence[str]] | None = None,
        pools: Mapping[str, int] | None = None,
    ) -> float | None:
        """Turn switches; the gap in ms, None if none turned."""
        ...

    def await_effect(self, timeout_s: float) -> bool:
        """Wait until everybody obeys."""
        ...

    def pause(self, *sources: str) -> None:
        """Let sources read nothing."""
        ...

    def resume(self, *sources: str) -> None:
        """Let them read on."""
        ...

    def set_bound(self, constraint: str, bound: Duration) -> None:
        """Hold a constraint to another bound."""
        ...

    def log_by_hand(self, entry: Entry) -> None:
        """What was changed by hand is a decision, and logged."""
        ...

    def stop(self, timeout: Duration) -> Drained | None:
        """Drain it."""
        ...
