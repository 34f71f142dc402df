"""What a change means for placement and settings of a running flow: now, and at the next boundary. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from penstock.control.pools import Pool
from penstock.flow.chains import all_chains
from penstock.flow.errors import FlowError
from penstock.flow.layers import Layout
from penstock.spark.routes import Settings, routes


@dataclass(frozen=True, slots=True)
class Change:
    """Settings for the next envelope, and the placement with its settings if a boundary is needed."""

    at_once: Settings
    at_boundary: tuple[Layout, Settings] | None = None


def change(
    layout: Layout,
    settings: Settings,
    *,
    active: Mapping[str, int] | None = None,
    lifetimes_ms: Mapping[str, float] | None = None,
    chains: Sequence[Sequence[str]] | None = None,
    pools: Mapping[str, int] | None = None,
) -> Change:
    """Everything that can be changed, in one step; what is left out stays.

    Replicas beyond the present pool, those of a task that receives by key (no key may be in two places) and
    pools wait for the boundary.
    """
    resized = layout.with_pools(pools) if pools else layout
    wanted = dict(settings.active)
    for task, count in (active or {}).items():
        _check_active(resized, task, count)
        wanted.update(dict.fromkeys(layout.abreast_of(task), count))
    later = {name: min(count, resized.unit_of(name).pool) for name, count in wanted.items()}
    now = {
        name: settings.active[name] if _by_key(layout, name) else min(count, layout.unit_of(name).pool)
        for name, count in later.items()
    }
    lifetimes = dict(settings.lifetime_ms)
    for stream, lifetime_ms in (lifetimes_ms or {}).items():
        lifetimes[layout.graph.stream(stream).name] = lifetime_ms
    chosen = settings.chains
    if chains is not None:
        chosen = [chain for chain in all_chains(layout, chains) if len(chain) > 1]
    at_once = msgspec.structs.replace(settings, active=now, lifetime_ms=lifetimes, chains=chosen)
    if later == now and resized == layout:
        return Change(at_once)
    return Change(at_once, (resized, msgspec.structs.replace(at_once, active=later, routes=routes(resized))))


def pools_of(layout: Layout) -> list[Pool]:
    """The pools that may be resized, one for all tasks that forward streams keep abreast."""
    found: dict[tuple[str, ...], Pool] = {}
    for task in layout.graph.tasks:
        together = layout.abreast_of(task.name)
        kinds = [layout.graph.task(name).kind for name in together]
        if together in found or "source" in kinds or not task.parallelism.elastic:
            continue
        units = {layout.unit_of(name) for name in together}
        most = min(layout.graph.task(name).parallelism.max for name in together)
        found[together] = Pool(task.name, layout.unit_of(task.name).pool, most, len(units))
    return list(found.values())


def _by_key(layout: Layout, task: str) -> bool:
    """Whether the task, or one that must have as many replicas, receives by key."""
    return any(
        stream.wiring == "key" for name in layout.abreast_of(task) for stream in layout.graph.inputs_of(name)
    )


def _check_active(layout: Layout, task: str, count: int) -> None:
    pool = layout.unit_of(task).pool
    if not 1 <= count <= pool:
        raise FlowError(
            f'{count} active replicas of task "{task}" are outside its pool of {pool};'
            f" resize it first with set_pool"
        )


def check_slots(layout: Layout, slots: int) -> None:
    """Refuse a layout that needs more task slots than there are."""
    if layout.slots <= slots:
        return
    pools = [f'{unit.pool} for "{unit.tasks[0]}"' for layer in layout.layers for unit in layer.units]
    raise FlowError(
        f'flow "{layout.graph.name}" with pools of {", ".join(pools)} needs {layout.slots} task slots'
        f" and Spark has {slots}; choose a smaller pool or start Spark with more"
    )
