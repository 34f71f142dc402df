"""Other numbers of replicas between two batches of a test, and state that goes along."""

from collections.abc import Mapping, Sequence

from penstock.durations import Duration
from penstock.epochs.tables import even_table, moves
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.worker.state_store import StateStore

Numbers = Mapping[str, Sequence[int]]
"""Replicas of tasks, batch by batch; the last number stays."""


def checked_numbers(graph: Graph, numbers: Numbers, commit: Duration | None) -> Numbers:
    """Refuse what cannot change."""
    for name, given in numbers.items():
        where = f'replicas: {graph.task(name).kind} "{name}" of flow "{graph.name}"'
        if graph.task(name).kind == "source":
            raise FlowError(f"{where} has a replica for each of its splits; leave it out")
        if not given or not all(isinstance(number, int) and number > 0 for number in given):
            raise FlowError(
                f"{where} needs its number of replicas in each batch, as in [1, 3], not {given!r}"
            )
        if commit is None:
            raise FlowError(f'{where} can change at a commit only; say how often, as in commit="1 s"')
        streams = (*graph.inputs_of(name), *graph.outputs_of(name))
        if forward := [stream.name for stream in streams if stream.wiring == "forward"]:
            raise FlowError(f"{where} cannot change alone: {', '.join(forward)} is wired forward")
    return numbers


def number_in(numbers: Numbers, graph: Graph, task: str, batch: int) -> int:
    """How many replicas a task has in a batch."""
    given = numbers.get(task, (graph.task(task).parallelism.initial,))
    return given[min(batch, len(given) - 1)]


def move_state(before: Sequence[StateStore], after: Sequence[StateStore]) -> None:
    """Keys go to their new owners with their state; values of replicas are merged, divided or copied."""
    for move in moves(even_table(1, len(before)), even_table(2, len(after))):
        after[move.taker].take_over(before[move.giver].hand_over(move.groups))
    for name, cell in after[0].replicated.items():
        values = cell.spread([store.of_replica(name) for store in before], len(after))
        for store, value in zip(after, values, strict=True):
            store.set_of_replica(name, value)
