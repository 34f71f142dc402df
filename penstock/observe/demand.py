"""What arrives at a source that knows how much it has not read, as Kafka's does:

    rate that arrives = (items read + growth of the lag) / interval

A source that is held back reads less than that, and one that catches up more.
"""

import msgspec

from penstock.stats.snapshot import Snapshot
from penstock.stats.summary import NOTHING, Summary, TaskSummary

_SILENT = TaskSummary()


class Demand:
    """Remembers the lag of every source from one snapshot to the next."""

    def __init__(self) -> None:
        self._lags: dict[str, float] = {}

    def seen(self, snapshot: Snapshot, summary: Summary) -> Snapshot:
        """The snapshot with these rates; where a replica has not told its lag, now or before, as it was."""
        before, self._lags = self._lags, _lags(snapshot, summary)
        tasks = dict(snapshot.tasks)
        for name, lag in self._lags.items():
            read = tasks[name].processed_total
            if name in before and read is not None:
                arrived = max(0.0, read + lag - before[name])
                tasks[name] = msgspec.structs.replace(tasks[name], rate_total=arrived / snapshot.interval_s)
        return msgspec.structs.replace(snapshot, tasks=tasks)


def _lags(snapshot: Snapshot, summary: Summary) -> dict[str, float]:
    """Of the sources all of whose replicas have told it, and that know no due times: those tell the rate."""
    lags = {}
    for name, task in snapshot.tasks.items():
        told = summary.tasks.get(name, _SILENT)
        if task.kind == "source" and told.due_per_s == NOTHING and told.lag_items.count == task.parallelism:
            lags[name] = told.lag_items.sum or 0.0
    return lags
