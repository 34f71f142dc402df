"""A running flow as somebody sees it who looks from time to time: what was measured since the last look."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from penstock.flow.chains import all_chains
from penstock.flow.graph import Constraint
from penstock.flow.layers import Layout
from penstock.observe.committed import Committed
from penstock.observe.demand import Demand
from penstock.observe.executors import executors_of
from penstock.observe.key_groups import with_key_groups
from penstock.observe.outside import Outside
from penstock.observe.queues import with_queues
from penstock.observe.reported import CommitTotals, Reported
from penstock.policy.held import Judge
from penstock.stats.observed import observed
from penstock.stats.snapshot import Snapshot
from penstock.wire.orders import Switches


class View:
    """Several may look, each at intervals of their own.

    `present` gives the layout and switches of now, `cpu_s` the CPU seconds of all the flow consists of, None
    where that is not all on this machine; `splits` how many each source has to be read; `commits` how those
    by epoch marks go; `divisible` the tasks whose keys may be divided in another way while it runs.
    """

    def __init__(
        self,
        reported: Reported,
        present: Callable[[], tuple[Layout, Switches]],
        cpu_s: Callable[[], float] | None,
        splits: Callable[[], Mapping[str, int]] = dict,
        commits: Callable[[], CommitTotals | None] = lambda: None,
        divisible: Callable[[Layout, Switches], Collection[str]] = lambda *_: (),
    ) -> None:
        self._splits = splits
        self._divisible = divisible
        self._reported = reported
        self._present = present
        self._window = reported.window()
        self._outside = Outside(cpu_s)
        self._demand = Demand()
        self._judge = Judge()
        self._committed = Committed(commits)

    def snapshot(self, interval_s: float) -> Snapshot:
        """What was measured since the last call, `interval_s` seconds ago, as a policy reads it."""
        layout, switches = self._present()
        seen = self._window.take()
        snapshot = observed(
            layout.graph,
            seen.summary,
            interval_s=interval_s,
            active=switches.active,
            lifetimes_ms=switches.lifetime_ms,
            chains=all_chains(layout, switches.chains),
        )
        snapshot = _one_per_split(self._demand.seen(snapshot, seen.summary), self._splits())
        receivers = {stream.name: stream.receiver for stream in layout.graph.streams}
        complete = self._outside.complete(snapshot, layout, self._reported.backlog(receivers), seen.passed_ms)
        names = [stream.name for stream in layout.graph.streams]
        judged = self._judge.judged(with_queues(complete, names, self._reported.waiting()))
        divisions = {task: switches.division(task, 0) for task in switches.active}
        able = self._divisible(layout, switches)
        waits_ms = {name: task.queue_wait_ms.largest for name, task in seen.summary.tasks.items()}
        by_group = with_key_groups(judged, seen.keyed, seen.group_times, divisions, able, waits_ms)
        executors = executors_of(seen, self._reported.executors())
        return self._committed.seen(msgspec.structs.replace(by_group, executors=executors or None))

    def constraints(self) -> tuple[Constraint, ...]:
        """Those of the flow, with the bounds they have now."""
        return self._present()[0].graph.constraints


def _one_per_split(snapshot: Snapshot, splits: Mapping[str, int]) -> Snapshot:
    """No source is to get more replicas than it has splits, whatever its range: they would read nothing."""
    sources = {
        name: msgspec.structs.replace(task, max=max(task.min, min(task.max or count, count)))
        for name, count in splits.items()
        if (task := snapshot.tasks[name]).elastic
    }
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, **sources})
