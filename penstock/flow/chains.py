"""Which tasks may share a process: pipelines of tasks joined one to one, with no other streams in between.

Thesis, section 4.7.1. A source is never part of one: it reads in a loop of its own. Nor is a task with
`chain=False`. An async task can only be the first of one: its calls are open while the process goes on.
Limits of memory add up in a process, so a task that has one does not share it with a task that has none.
"""

from collections.abc import Iterable, Sequence

from penstock.flow.errors import FlowError
from penstock.flow.layers import Layout


def pipelines(layout: Layout) -> list[list[str]]:
    """The longest chains there could be, in topological order; a task that fits no other is its own."""
    graph = layout.graph
    follower: dict[str, str] = {}
    for stream in graph.streams:
        alone = len(graph.outputs_of(stream.sender)) == 1 and len(graph.inputs_of(stream.receiver)) == 1
        sender, receiver = graph.task(stream.sender), graph.task(stream.receiver)
        limited = (sender.memory_bytes is None) != (receiver.memory_bytes is None)
        allowed = sender.chain and receiver.chain and not limited and receiver.concurrency is None
        if alone and layout.is_local(stream) and sender.kind != "source" and allowed:
            follower[stream.sender] = stream.receiver
    found = []
    for task in graph.tasks:
        if task.kind == "source" or task.name in follower.values():
            continue
        chain = [task.name]
        while chain[-1] in follower:
            chain.append(follower[chain[-1]])
        found.append(chain)
    return found


def all_chains(layout: Layout, wanted: Iterable[Sequence[str]]) -> list[list[str]]:
    """`wanted` and every other task on its own; refused unless each chain is a piece of a pipeline."""
    place = {
        name: (line, at) for line, chain in enumerate(pipelines(layout)) for at, name in enumerate(chain)
    }
    taken: dict[str, list[str]] = {}
    for chain in wanted:
        for name in chain:
            layout.graph.task(name)
        if any(name in taken for name in chain):
            raise FlowError(f"a task of chain {_shown(chain)} is in another chain too; name each task once")
        unwilling = [name for name in chain if not layout.graph.task(name).chain]
        if len(chain) > 1 and unwilling:
            raise FlowError(
                f'{_shown(chain)} is no chain: task "{unwilling[0]}" has chain=False,'
                " so it keeps a process of its own"
            )
        awaited = [name for name in chain[1:] if layout.graph.task(name).concurrency is not None]
        if awaited:
            raise FlowError(
                f'{_shown(chain)} is no chain: task "{awaited[0]}" is async,'
                " so it can only be the first of one"
            )
        if len(chain) > 1:
            spots = [place.get(name) for name in chain]
            first = spots[0]
            if first is None or spots != [(first[0], first[1] + i) for i in range(len(chain))]:
                raise FlowError(
                    f"{_shown(chain)} is no chain: its tasks must follow each other by forward streams,"
                    " with no other streams in between and in the same unit, and all or none have a memory="
                )
        taken.update((name, list(chain)) for name in chain)
    chains = []
    for name in (name for chain in pipelines(layout) for name in chain):
        chain = taken.get(name, [name])
        if chain[0] == name:
            chains.append(list(chain))
    return chains


def _shown(chain: Sequence[str]) -> str:
    return " -> ".join(chain)
