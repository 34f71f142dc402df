"""Dead letters played back: each item enters the flow again at the task where it failed."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.flow.cut import Cut, from_task
from penstock.flow.errors import FlowError
from penstock.flow.flow import Flow
from penstock.flow.graph import Graph
from penstock.io.letter_box import LetterBox
from penstock.io.letters import LetterError, Letters, Stretch
from penstock.spark.run import dead_letters_of, run

_LOG = logging.getLogger("penstock")


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of the letters of a task; `passed_over` hold no item that could enter the flow again."""

    task: str
    letters: int
    failed_again: int
    passed_over: int


def replay_dead_letters(
    flow: Flow,
    dead_letters: str | os.PathLike[str] | None = None,
    *,
    task: str | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> list[Replayed]:
    """Play the dead letters of a flow back, task by task, and return when all that came of them has arrived.

    `dead_letters` is the directory that the flow wrote them to, or one of its files; `task` chooses those of
    one task. Letters are marked when the flow has ended well; after a failure they are played back again.
    Those that fail again are letters again. Stop the flow itself first: both would write to its sinks.
    """
    graph = flow.graph()
    if task is not None:
        graph.task(task)
    box = LetterBox(Path(dead_letters or dead_letters_of(graph)).absolute())
    with box.locked():
        waiting, remarks = box.waiting()
        chosen = {name: found for name, found in waiting.items() if task in (None, name)}
        for name in chosen:
            graph.task(name)
        for remark in remarks:
            (on_notice or _LOG.warning)(remark)
        if not chosen:
            of = "" if task is None else f' of task "{task}"'
            raise LetterError(
                f"no dead letters{of} wait in {box.place}: none was written, or all are replayed"
            )
        counted = {name: _counted(graph, name, found) for name, found in chosen.items()}
        return [
            _replay(graph, box, known.name, chosen[known.name], counted[known.name], master, conf)
            for known in graph.tasks
            if known.name in chosen
        ]


def _counted(graph: Graph, task: str, stretches: list[Stretch]) -> Counter[str]:
    """How many letters came by each stream; "" stands for those that cannot enter the flow again."""
    counted: Counter[str] = Counter()
    known = [stream.name for stream in graph.inputs_of(task)]
    for stretch in stretches:
        for letter, after in stretch.letters():
            came_by = letter.input if letter.pickle is not None and letter.input is not None else ""
            if came_by and came_by not in known:
                raise FlowError(
                    f'{stretch.path}, before byte {after}: this item came to task "{task}" by stream'
                    f' "{came_by}", which flow "{graph.name}" does not have; it has {", ".join(known)}'
                )
            counted[came_by] += 1
    return counted


def _replay(
    graph: Graph,
    box: LetterBox,
    task: str,
    stretches: list[Stretch],
    counted: Counter[str],
    master: str | None,
    conf: Mapping[str, str] | None,
) -> Replayed:
    inputs = [name for name in counted if name]
    failed_again = 0
    attempt = box.begin()
    if inputs:
        bodies = {name: Letters(tuple(stretches), name) for name in inputs}
        part = from_task(graph, task, bodies)
        job = run(Cut(part), dead_letters=attempt, master=master, conf=conf)
        try:
            job.await_termination()
        except BaseException:
            job.abandon()
            raise
        failed_again = sum(one.dead_lettered for one in job.metrics().tasks.values())
    box.done(attempt, stretches)
    return Replayed(task, counted.total() - counted[""], failed_again, counted[""])
