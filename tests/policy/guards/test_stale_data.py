"""Repeated snapshots and data from before the last change."""

from penstock.policy.guards.port import Seen
from penstock.policy.guards.stale_data import StaleData
from penstock.stats.snapshot import Snapshot
from tests.policy.guards.scripted import proposal, snapshot, task


def faults(inspector: StaleData, *script: tuple[Snapshot, int]) -> list[list[str]]:
    """The faults of each snapshot of task `a`; the number is what is issued when there are none."""
    memory, found = inspector.initial_memory(), []
    for index, (one, issued) in enumerate(script, start=1):
        seen = Seen(one, 5.0 * index)
        refusals = inspector.inspect(seen, memory)
        wanted = one.tasks["a"].parallelism if refusals else issued
        memory = inspector.settle(seen, proposal(one, {"a": wanted}), memory)
        found.append([refusal.why for refusal in refusals])
    return found


def measured(replicas: int, processed: float) -> Snapshot:
    return snapshot({"a": task(replicas, processed_total=processed)})


def test_an_equal_snapshot_was_not_refreshed() -> None:
    found = faults(StaleData(30), (measured(1, 5.0), 1), (measured(1, 5.0), 1), (measured(1, 6.0), 1))
    assert found == [[], ["every measurement equals the last snapshot's: they were not refreshed"], []]


def test_an_idle_flow_may_repeat_itself() -> None:
    assert faults(StaleData(30), (measured(1, 0.0), 1), (measured(1, 0.0), 1)) == [[], []]


def test_data_from_before_the_change_waits_for_it() -> None:
    found = faults(StaleData(30), (measured(1, 1.0), 4), (measured(1, 2.0), 4), (measured(4, 3.0), 4))
    assert found == [[], ["measured with 1 replicas, but 4 were asked for 5 s ago"], []]


def test_an_engine_that_does_not_obey_is_taken_as_it_is() -> None:
    script = [(measured(1, float(i)), 4 if i == 1 else 1) for i in range(1, 6)]
    found = faults(StaleData(10), *script)
    assert [bool(faults) for faults in found] == [False, True, False, False, False]
