"""The port between the pages of the dashboard and what they show: a recording, or a flow that runs."""

from collections.abc import Callable
from typing import Protocol

from penstock.control.events import Event
from penstock.dashboard.timeline import Timeline
from penstock.dashboard.told import Now, Told
from penstock.operate.protocol import Answer, Set


class Shown(Protocol):
    """A flow."""

    @property
    def flow(self) -> str:
        """Its name."""
        ...

    @property
    def policy(self) -> str | None:
        """Who decides about it, None if nobody does."""
        ...

    @property
    def timeline(self) -> Timeline:
        """Its intervals."""
        ...

    @property
    def steer(self) -> Callable[[Set], Answer] | None:
        """Changes it; None for what cannot be changed any more."""
        ...

    def now(self) -> Now | None:
        """How it is in this moment; None if it does not run."""
        ...

    def decisions(self, before_s: float, count: int, *, changes: bool) -> list[Told]:
        """The last decisions up to that time, newest first; `changes`: only those that changed something."""
        ...

    def events(self) -> list[Event]:
        """Commits, failures and restarts, oldest first."""
        ...
