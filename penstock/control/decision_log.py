"""Every decision with what came of it: its effect at once, and what was observed an interval later."""

from collections import deque
from collections.abc import Callable

import msgspec

from penstock.control.engine import Effect
from penstock.policy.decision import Decision
from penstock.policy.measured import sequence_latency_ms
from penstock.stats.snapshot import Snapshot

KEPT = 1000


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What the interval after a decision showed."""

    latency_ms: dict[str, float | None]
    parallelism: dict[str, int]
    utilization: dict[str, float | None]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision in the log; `observed` is absent for the last one of a run.

    `by` says who made it if that was no policy: "penstock set", or the dashboard. `number` is then that of
    the interval in which it was made.
    """

    number: int
    at_s: float
    decision: Decision
    effect: Effect | None = None
    observed: Observed | None = None
    by: str | None = None


def observed_in(snapshot: Snapshot) -> Observed:
    """The figures of a snapshot by which a decision is judged."""
    elastic = snapshot.elastic_tasks()
    return Observed(
        latency_ms={c.name: sequence_latency_ms(snapshot, c) for c in snapshot.constraints},
        parallelism={name: task.parallelism for name, task in elastic.items()},
        utilization={name: task.utilization for name, task in elastic.items()},
    )


class DecisionLog:
    """The latest decisions; `finished` is handed each entry once nothing more will be known of it."""

    def __init__(self, finished: Callable[[Entry], None] | None = None, kept: int = KEPT) -> None:
        self._entries: deque[Entry] = deque(maxlen=kept)
        self._finished = finished
        self._open = False

    def entries(self) -> list[Entry]:
        """The oldest first; the last one may still be incomplete."""
        return list(self._entries)

    def decided(self, number: int, at_s: float, decision: Decision) -> None:
        """A new decision; the one before must have been completed."""
        self._entries.append(Entry(number=number, at_s=at_s, decision=decision))
        self._open = True

    def took_effect(self, effect: Effect | None) -> None:
        """How the latest decision was carried out."""
        self._entries[-1] = msgspec.structs.replace(self._entries[-1], effect=effect)

    def complete(self, observed: Observed | None) -> None:
        """What the next interval showed, None if there is none; does nothing when no decision waits."""
        if not self._open:
            return
        self._open = False
        self._entries[-1] = msgspec.structs.replace(self._entries[-1], observed=observed)
        if self._finished is not None:
            self._finished(self._entries[-1])
