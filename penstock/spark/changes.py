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
from penstock.wire.divisions import Division, Spans, even_or, table_problem
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
    tables: Mapping[str, Spans] | None = None,
) -> Change:
    """Everything that can be changed, in one step; what is left out stays.

    Replicas beyond the present pool, those of a task that receives by key (no key may be in two places),
    those of sources (no split may be read twice) and pools wait for the boundary, and so do chains if a task
    leaves its host to host others: its next host might be faster than what the last one sent. Where commits
    are epoch marks, keys and values of replicas change hands at one; there a table may say who owns which
    keys. Those of tasks that get another number of replicas and no table are divided evenly.
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
        if _is_divided(layout, name, marks=switches.marked is not None) or _of_source(layout, name)
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
    divided = _tables(layout, switches, later, tables or {})
    if later == now and resized == layout and chained == chosen and divided == switches.tables:
        return Change(at_once)
    if resized == layout and chained == chosen and switches.marked is not None:
        return Change(at_once, at_mark=msgspec.structs.replace(at_once, active=later, tables=divided))
    marked = None if switches.marked is None else marked_streams(resized)
    at_boundary = msgspec.structs.replace(
        at_once, active=later, chains=chosen, routes=routes(resized), marked=marked, tables=divided
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


def _is_divided(layout: Layout, task: str, *, marks: bool) -> bool:
    """Whether the task, or one that must have as many replicas, receives by key, or has values of replicas.

    Such values without a key change hands at marks only.
    """
    abreast = layout.abreast_of(task)
    by_key = any(stream.wiring == "key" for name in abreast for stream in layout.graph.inputs_of(name))
    return by_key or (marks and any(layout.graph.task(name).state for name in abreast))


def divisible(layout: Layout, switches: Switches) -> list[str]:
    """Tasks whose keys can be given to other replicas by a table; a fixed number of replicas forbids it."""
    if switches.marked is None:
        return []
    by_key = {stream.receiver for stream in layout.graph.streams if stream.wiring == "key"}
    elastic = [task.name for task in layout.graph.tasks if task.parallelism.elastic and task.name in by_key]
    of_replicas = {
        task.name for task in layout.graph.tasks for spec in task.state if spec.kind == "per replica"
    }
    return [name for name in elastic if name not in switches.rescales and name not in of_replicas]


def _tables(
    layout: Layout, switches: Switches, later: Mapping[str, int], wanted: Mapping[str, Spans]
) -> dict[str, Spans]:
    """Those of now that stay, and those that are wanted; even ones are not among them."""
    stay = {task: table for task, table in switches.tables.items() if later[task] == switches.active[task]}
    able = divisible(layout, switches) if wanted else ()
    for task, table in wanted.items():
        if task not in able:
            raise FlowError(
                f'the keys of task "{task}" cannot be given to other replicas by a table: that takes commits'
                " by marks, elastic(...) replicas, and no state per_replica"
            )
        problem = table_problem(table, later[task])
        if problem is not None:
            raise FlowError(f'no table for the keys of task "{task}": {problem}')
    given = {task: even_or(table, later[task]) for task, table in wanted.items()}
    stay = {task: table for task, table in stay.items() if task not in given}
    return stay | {task: table for task, table in given.items() if table is not None}


def rescaling(now: Switches, then: Switches, epoch: int) -> Switches:
    """Keys change hands at the mark of an epoch; until that is over, all replicas are there."""
    rescales = {
        task: Rescale(epoch, now.active[task], count, now.tables.get(task), then.tables.get(task))
        for task, count in then.active.items()
        if count != now.active[task] or then.tables.get(task) != now.tables.get(task)
    }
    return msgspec.structs.replace(
        now,
        active={task: max(count, then.active[task]) for task, count in now.active.items()},
        rescales=rescales,
    )


def rescaled(switches: Switches) -> Switches:
    """That epoch is over."""
    return _divided(
        switches, {task: rescale.at(rescale.epoch) for task, rescale in switches.rescales.items()}
    )


def not_rescaled(switches: Switches) -> Switches:
    """It never came to that epoch."""
    before = {task: rescale.at(rescale.epoch - 1) for task, rescale in switches.rescales.items()}
    return _divided(switches, before)


def _divided(switches: Switches, divisions: Mapping[str, Division]) -> Switches:
    """Keys of these tasks are divided so, and nothing is under way."""
    active = {task: division.replicas for task, division in divisions.items()}
    tables = {task: table for task, table in switches.tables.items() if task not in divisions}
    tables |= {task: one.table for task, one in divisions.items() if one.table is not None}
    return msgspec.structs.replace(switches, active=switches.active | active, tables=tables, rescales={})


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
