"""The executors of a flow in a snapshot: what their workers and their Java use, and what room they have."""

from collections.abc import Mapping

from penstock.observe.reported import Seen
from penstock.stats.snapshot import ExecutorStats
from penstock.wire.reports import Footprint, Slots


def executors_of(
    seen: Seen, told: Mapping[str, tuple[Footprint | None, Slots | None]]
) -> dict[str, ExecutorStats]:
    """By name. An interval in which an executor told nothing of its Java has what it told before."""
    return {
        name: _one(seen.cores_used.get(name), seen.java_cores_used.get(name), *told.get(name, (None, None)))
        for name in sorted({*seen.cores_used, *told})
    }


def _one(
    cores_used: float | None, java: float | None, footprint: Footprint | None, slots: Slots | None
) -> ExecutorStats:
    if java is None and footprint is not None and footprint.over_s > 0:
        java = footprint.java_s / footprint.over_s
    return ExecutorStats(
        cores=None if footprint is None else footprint.cores,
        cores_used=cores_used,
        java_cores_used=java,
        slots=None if slots is None else slots.all,
        slots_used=None if slots is None else slots.used,
        memory_bytes=None if footprint is None else footprint.memory_bytes,
    )
