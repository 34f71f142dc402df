"""What a change means for placement and switches of a running flow: now, at an epoch mark, or at a boundary.

Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from penstock.durations import Duration, seconds
from penstock.flow.chains import all_chains
from penstock.flow.errors import FlowError
from penstock.flow.layers import Layout
from penstock.wire.orders import Rescale, Switches
from penstock.wire.routes import marked_streams, routes

_SHORTEST_REPORT_S = 0.5


@dataclass(frozen=True, slots=True)
class Change:
    """Switches for the next envelope, those behind an epoch mark, and the placement with its switches if a
    boundary is needed."""

    at_once: Switches
    at_boundary: tuple[Layout, Switches] | None = None
    at_mark: Switches | None = None


def change(
    layout: Layout,
    switches: Switches,
    *,
    active: Mapping[str, int] | None = None,
    lifetimes_ms: Mapping[str, float] | None = None,
    chains: Sequence[Sequence[str]] | None = None,
    pools: Mapping[str, int] | None = None,
) -> Change:
    """Everything that can be changed, in one step; what is left out stays.

    Replicas beyond the present pool, those of a task that receives by key (no key may be in two places),
    those of sources (no split may be read twice) and pools wait for the boundary, and so do chains if a task
    leaves its host to host others: its next host might be faster than what the last one sent. Where commits
    are epoch marks, keys whose state is declared change hands at one.
    """
    sizes = dict(pools or {})
    sizes.update((task, count) for task, count in (active or {}).items() if _of_source(layout, task))
    resized = layout.with_pools(sizes) if sizes else layout
    wanted = dict(switches.active)
    for task, count in (active or {}).items():
        _check_active(resized, task, count)
        wanted.update(dict.fromkeys(layout.abreast_of(task), count))
    wanted.update((name, resized.unit_of(name).pool) for name in wanted if _of_source(layout, name))
    later = {name: min(count, resized.unit_of(name).pool) for name, count in wanted.items()}
    now = {
        name: switches.active[name]
        if _by_key(layout, name) or _of_source(layout, name)
        else min(count, layout.unit_of(name).pool)
        for name, count in later.items()
    }
    lifetimes = dict(switches.lifetime_ms)
    for stream, lifetime_ms in (lifetimes_ms or {}).items():
        lifetimes[layout.graph.stream(stream).name] = lifetime_ms
    chosen = switches.chains
    if chains is not None:
        chosen = [chain for chain in all_chains(layout, chains) if len(chain) > 1]
    chained = switches.chains if _overtakes(switches.chains, chosen) else chosen
    at_once = msgspec.structs.replace(switches, active=now, lifetime_ms=lifetimes, chains=chained)
    if later == now and resized == layout and chained == chosen:
        return Change(at_once)
    moving = [name for name, count in later.items() if count != now[name]]
    stays = resized == layout and chained == chosen and switches.marked is not None
    if stays and all(_is_movable(layout, name) for name in moving):
        return Change(at_once, at_mark=msgspec.structs.replace(at_once, active=later))
    marked = None if switches.marked is None else marked_streams(resized)
    at_boundary = msgspec.structs.replace(
        at_once, active=later, chains=chosen, routes=routes(resized), marked=marked
    )
    return Change(at_once, (resized, at_boundary))


def pause(
    layout: Layout, switches: Switches, *, pause: Collection[str] = (), resume: Collection[str] = ()
) -> Switches:
    """Sources that are to read nothing, and those that go on; what is left out stays."""
    sources = [task.name for task in layout.graph.tasks if task.kind == "source"]
    for name in (*pause, *resume):
        layout.graph.source(name)
    wanted = {*switches.paused, *pause} - {*resume}
    return msgspec.structs.replace(switches, paused=[name for name in sources if name in wanted])


def _overtakes(before: Sequence[Sequence[str]], after: Sequence[Sequence[str]]) -> bool:
    """Whether a task that was hosted by another becomes a host."""
    hosted = {task for chain in before for task in chain[1:]}
    return any(chain[0] in hosted for chain in after)


def _by_key(layout: Layout, task: str) -> bool:
    """Whether the task, or one that must have as many replicas, receives by key."""
    return any(
        stream.wiring == "key" for name in layout.abreast_of(task) for stream in layout.graph.inputs_of(name)
    )


def _is_movable(layout: Layout, task: str) -> bool:
    """Whether nothing but state of keys has to move, and whatever goes by key has such state.

    A task without state could not tell when its items may come: it has nothing to wait for.
    """
    graph = layout.graph
    abreast = [graph.task(name) for name in layout.abreast_of(task)]
    by_key = [one for one in abreast if any(s.wiring == "key" for s in graph.inputs_of(one.name))]
    kinds = {spec.kind for one in abreast for spec in one.state}
    return "per replica" not in kinds and all(one.state for one in by_key)


def rescaling(now: Switches, then: Switches, epoch: int) -> Switches:
    """Keys change hands at the mark of an epoch; until that is over, all replicas are there."""
    changed = [task for task, count in then.active.items() if count != now.active[task]]
    return msgspec.structs.replace(
        now,
        active={task: max(count, then.active[task]) for task, count in now.active.items()},
        rescales={task: Rescale(epoch, now.active[task], then.active[task]) for task in changed},
    )


def rescaled(switches: Switches) -> Switches:
    """That epoch is over."""
    after = {task: rescale.after for task, rescale in switches.rescales.items()}
    return msgspec.structs.replace(switches, active=switches.active | after, rescales={})


def not_rescaled(switches: Switches) -> Switches:
    """It never came to that epoch."""
    before = {task: rescale.before for task, rescale in switches.rescales.items()}
    return msgspec.structs.replace(switches, active=switches.active | before, rescales={})


def _of_source(layout: Layout, task: str) -> bool:
    """Whether the task is a source, or must have as many replicas as one: none of them is held ready."""
    return any(layout.graph.task(name).kind == "source" for name in layout.abreast_of(task))


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


def sampling_share(share: float) -> float:
    """The share of the items that is measured."""
    if not 0.0 <= share <= 1.0:
        raise FlowError(f"a sampling rate of {share} is not between 0 and 1")
    return share


def measuring_interval_s(every: Duration) -> float:
    """The time between two reports of a worker, if it is long enough to be worth one."""
    every_s = seconds(every)
    if every_s < _SHORTEST_REPORT_S:
        raise FlowError(f"a report every {every_s:g} s is more often than every {_SHORTEST_REPORT_S} s")
    return every_s
