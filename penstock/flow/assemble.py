"""Putting a flow together: links become streams, tasks are ordered, and what cannot run is refused."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.flow.constraints import Wish, resolve
from penstock.flow.errors import FlowError
from penstock.flow.graph import DEFAULT_BATCH_BYTES, ITEM_ID, Graph, Stream, Task
from penstock.flow.output import Wire
from penstock.flow.stateful import refuse_state_without_keys


@dataclass(frozen=True, slots=True)
class Link:
    """A declared stream; its sender may be declared later than the link, so it is only a name."""

    sender: str
    output: str | None
    receiver: str
    wire: Wire


def assemble(
    flow: str, tasks: Sequence[Task], links: Sequence[Link], wishes: Sequence[Wish], *, ids: bool
) -> Graph:
    """The validated graph; it depends only on the arguments, so assembling again gives an equal one."""
    if not isinstance(ids, bool):
        raise FlowError(f'flow "{flow}": ids must be True or False, not {ids!r}')
    if not any(task.kind == "source" for task in tasks):
        raise FlowError(f'flow "{flow}" has no source; add one with flow.source(...)')
    known = {task.name: task for task in tasks}
    streams = [_stream(flow, known, link, ids=ids) for link in links]
    _refuse_twice(flow, streams)
    order = _topological(flow, known, streams)
    position = {name: index for index, name in enumerate(order)}
    streams.sort(key=lambda stream: (position[stream.sender], position[stream.receiver]))
    ordered = _abreast([known[name] for name in order], streams)
    graph = Graph(flow, ids, tuple(ordered), tuple(streams))
    _refuse_dead_ends(graph)
    _refuse_uneven_forward(graph)
    refuse_state_without_keys(graph)
    return replace(graph, constraints=resolve(graph, wishes))


def _stream(flow: str, tasks: Mapping[str, Task], link: Link, *, ids: bool) -> Stream:
    receiver = tasks[link.receiver]
    reading = f'{receiver.kind} "{receiver.name}" of flow "{flow}" reads'
    sender = tasks.get(link.sender)
    if sender is None:
        raise FlowError(
            f'{reading} "{link.sender}", which does not exist; declare it or read one of {_listed(tasks)}'
        )
    if sender.kind == "sink":
        raise FlowError(f'{reading} sink "{sender.name}", but a sink has no outputs; read a task instead')
    output = sender.outputs[0] if link.output is None else link.output
    if output not in sender.outputs:
        raise FlowError(
            f'{reading} output "{output}" of "{sender.name}", which does not exist;'
            f" its outputs are {_listed(sender.outputs)}"
        )
    shown = sender.name if output == sender.outputs[0] else f"{sender.name}.{output}"
    name = f"{shown}->{receiver.name}"
    wire = _wire_of_ids(flow, name, link.wire, receiver, ids=ids)
    unsaid = {
        "wiring": wire.wiring,
        "codec": wire.codec,
        "batch_lifetime_ms": wire.batch_lifetime_ms,
        "batch_bytes": wire.batch_bytes,
    }
    return Stream(
        name=name,
        sender=sender.name,
        output=output,
        receiver=receiver.name,
        wiring=wire.wiring or "round_robin",
        key=wire.key,
        codec=wire.codec or "pickle",
        batch_lifetime_ms=wire.batch_lifetime_ms or 0.0,
        batch_bytes=wire.batch_bytes or DEFAULT_BATCH_BYTES,
        defaults=tuple(setting for setting, value in unsaid.items() if value is None),
        balanced=wire.balanced,
    )


def _wire_of_ids(flow: str, stream: str, wire: Wire, receiver: Task, *, ids: bool) -> Wire:
    """A sink that drops what it has seen must get every copy of an item in the same replica."""
    if receiver.kind != "sink" or getattr(receiver.body, "by_id", False) is not True:
        return wire
    if not ids:
        raise FlowError(
            f'sink "{receiver.name}" of flow "{flow}" needs items with ids;'
            f' declare the flow as Flow("{flow}", ids=True)'
        )
    if wire.wiring is not None:
        raise FlowError(
            f'stream "{stream}" of flow "{flow}" is wired {wire.wiring}, but sink "{receiver.name}" spreads'
            " items by their ids; remove the wiring"
        )
    return replace(wire, wiring="key", key=ITEM_ID)


def _refuse_twice(flow: str, streams: Iterable[Stream]) -> None:
    seen: set[str] = set()
    for stream in streams:
        if stream.name in seen:
            raise FlowError(
                f'flow "{flow}" has stream "{stream.name}" twice; read an output once, or read another output'
            )
        seen.add(stream.name)


def _topological(flow: str, tasks: Mapping[str, Task], streams: Sequence[Stream]) -> list[str]:
    """Kahn's algorithm; among tasks that are ready, the one declared first comes first."""
    order: list[str] = []
    waiting = dict.fromkeys(tasks)
    while waiting:
        blocked = {stream.receiver for stream in streams if stream.sender in waiting}
        ready = next((name for name in waiting if name not in blocked), None)
        if ready is None:
            raise FlowError(
                f'flow "{flow}" has a cycle: {_cycle(waiting, streams)}; a flow must not lead back to itself,'
                " so remove one of these streams"
            )
        order.append(ready)
        del waiting[ready]
    return order


def _cycle(waiting: Iterable[str], streams: Sequence[Stream]) -> str:
    """Every waiting task is fed by a waiting one; walking upstream from any of them must come around.

    Shown from the task declared first, which `waiting` has first.
    """
    feeder = {s.receiver: s.sender for s in streams if s.sender in set(waiting)}
    path = [next(iter(waiting))]
    while feeder[path[-1]] not in path:
        path.append(feeder[path[-1]])
    loop = path[path.index(feeder[path[-1]]) :]
    loop.reverse()
    first = loop.index(next(name for name in waiting if name in loop))
    loop = loop[first:] + loop[:first]
    return " -> ".join([*loop, loop[0]])


def _abreast(order: Sequence[Task], streams: Sequence[Stream]) -> list[Task]:
    """A task that says nothing of its parallelism takes over that of the first task it is forwarded from."""
    settled: dict[str, Task] = {}
    for task in order:
        senders = [s.sender for s in streams if s.receiver == task.name and s.wiring == "forward"]
        inherits = senders and "parallelism" in task.defaults
        settled[task.name] = replace(task, parallelism=settled[senders[0]].parallelism) if inherits else task
    return list(settled.values())


def _refuse_dead_ends(graph: Graph) -> None:
    for task in graph.tasks:
        if task.kind != "sink" and not graph.outputs_of(task.name):
            raise FlowError(
                f'nothing reads {task.kind} "{task.name}" of flow "{graph.name}";'
                " lead it to a sink with .sink(...) or remove it"
            )


def _refuse_uneven_forward(graph: Graph) -> None:
    for stream in graph.streams:
        sender, receiver = graph.task(stream.sender), graph.task(stream.receiver)
        if stream.wiring == "forward" and sender.parallelism != receiver.parallelism:
            raise FlowError(
                f'forward stream "{stream.name}" of flow "{graph.name}" connects parallelism'
                f" {sender.parallelism} with {receiver.parallelism};"
                " give both the same parallelism, or use .round_robin()"
            )
        if stream.wiring == "forward" and sender.kind == "source" and sender.parallelism.elastic:
            raise FlowError(
                f'forward stream "{stream.name}" of flow "{graph.name}" comes from a source whose replicas'
                " may change; give the source a fixed number of replicas, or use .round_robin()"
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
