"""What was committed since the last look, and how much state there is."""

import time
from collections.abc import Callable

import msgspec

from penstock.observe.reported import CommitTotals
from penstock.stats.snapshot import CommitStats, Snapshot


class Committed:
    """Of one who looks from time to time; `commits` are the totals of now, None where there are no marks."""

    def __init__(
        self, commits: Callable[[], CommitTotals | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._commits = commits
        self._clock = clock
        self._before = commits() or CommitTotals()

    def seen(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot of an interval that ends now, with its commits and the size of every state."""
        now = self._commits()
        if now is None:
            return snapshot
        before, self._before = self._before, now
        commits = CommitStats(
            epoch=now.epoch,
            age_s=None if now.last_s is None else max(0.0, self._clock() - now.last_s),
            took_ms=now.took_ms,
            committed=now.count - before.count,
            void=now.voids - before.voids,
            rollbacks=now.rollbacks - before.rollbacks,
        )
        tasks = {
            name: msgspec.structs.replace(task, state_bytes=now.state_bytes.get(name))
            for name, task in snapshot.tasks.items()
        }
        return msgspec.structs.replace(snapshot, commits=commits, tasks=tasks)
