"""What a flow did in a test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.io.letters import Letter


class Arrival(NamedTuple):
    """An item that a sink took: which replica of it, when (by the virtual clock), and its metadata."""

    item: Any
    replica: int
    at_s: float
    headers: Mapping[str, bytes] = {}
    timestamp: int | None = None
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What arrived, `result["sink"]`, and what did not.

    `skipped` counts the items that each task with on_error="skip" left out; `dead_letters` are in the order
    of the tasks in the flow. `seconds` is how long the flow ran by the virtual clock.
    """

    arrivals: Mapping[str, Sequence[Arrival]]
    dead_letters: Sequence[Letter]
    skipped: Mapping[str, int]
    seconds: float

    def __getitem__(self, sink: str) -> list[Any]:
        """The items of a sink, in the order they arrived."""
        try:
            return [arrival.item for arrival in self.arrivals[sink]]
        except KeyError:
            known = ", ".join(self.arrivals)
            raise LookupError(f'the flow has no sink "{sink}"; its sinks are {known}') from None

    def by_replica(self, sink: str) -> dict[int, list[Any]]:
        """The items of a sink that each of its replicas got; one that got none is not there."""
        self[sink]
        found: dict[int, list[Any]] = {}
        for arrival in self.arrivals[sink]:
            found.setdefault(arrival.replica, []).append(arrival.item)
        return found
