"""Tasks that declare state: what is refused, and what becomes of the state, in words."""

from typing import Final

from penstock.flow.delivery import is_transactional
from penstock.flow.errors import FlowError
from penstock.flow.graph import Form, Graph, Task
from penstock.flow.names import check_name
from penstock.state import Spec, StateError, declared

COMMITTED: Final = (
    "is in every commit: if a worker ends, or the flow, it goes back to the last one, and what came after"
    " that is read again"
)
LOST: Final = (
    "is in the memory of its workers and in no commit: it is lost when a worker or executor ends or is"
    " replaced, when a replica moves to another executor, and when the flow is started again"
)
ELSEWHERE: Final = (
    "with a checkpoint in an object store other than S3 (gs:, abfs:), or on a cluster without a checkpoint,"
)
UNDECLARED: Final = (
    "what a task or sink keeps in attributes that it does not declare (penstock.state) is in no commit, stays"
    " behind when keys move to another replica (a fixed parallelism forbids that), and ends when tasks are"
    " chained or taken apart (chain=False forbids that)"
)

_OBJECTS: Final[tuple[Form, ...]] = ("object", "sink_object", "sink_batches")


def checked_state(body: object, form: Form, where: str, *, awaited: bool) -> tuple[Spec, ...]:
    """What the class of a body declares to keep."""
    parts = declared(body)
    try:
        found = [spec for part in parts if (spec := part.spec()) is not None]
    except StateError as error:
        raise FlowError(f"{where}: {error}") from error
    if not parts:
        return ()
    if awaited:
        raise FlowError(
            f"{where} is async and declares state; calls for one key would overlap, so make it plain"
            " and await in a task before it"
        )
    if form == "sink_batches":
        raise FlowError(f"{where} declares state, which write_many(items) cannot have; use write(item)")
    if form == "sink_object" and any(spec.kind == "timer" for spec in found):
        raise FlowError(f"{where}: a sink has no timers; use .task(...) before it")
    if (body if isinstance(body, type) else type(body)).__dictoffset__ == 0:
        raise FlowError(f"{where} declares state, so its class needs a __dict__; remove its __slots__")
    return tuple(found)


def checked_was(value: object, state: tuple[Spec, ...], where: str) -> str | None:
    """The earlier name of a task with state."""
    if value is None:
        return None
    if not state:
        raise FlowError(f"{where}: was={value!r} is for tasks that declare state; remove it")
    return check_name(value, f"{where}: was")


def refuse_state_without_keys(graph: Graph) -> None:
    """State of keys needs keys, on every input."""
    for task in graph.tasks:
        if not _of_keys(task):
            continue
        for stream in graph.inputs_of(task.name):
            if stream.wiring != "key" or not callable(stream.key):
                raise FlowError(
                    f'{task.kind} "{task.name}" of flow "{graph.name}" declares state of keys'
                    f' ({", ".join(spec.name for spec in _of_keys(task))}), but stream "{stream.name}" is'
                    f" wired {stream.wiring}; use .by_key(...) before it, or state.per_replica(...)"
                )


def refuse_moving_state(graph: Graph, *, committed: bool, by_marks: bool = False) -> None:
    """State moves between two batches, or at epoch marks, by what was committed of it. Else replicas stay."""
    for task in graph.tasks:
        if not (task.state and task.parallelism.elastic):
            continue
        where = f'{task.kind} "{task.name}" of flow "{graph.name}" declares state and is elastic'
        if not committed:
            raise FlowError(
                f"{where}: its state is not committed here, so it cannot move; give it a fixed parallelism"
            )
        if not by_marks and all(stream.wiring != "key" for stream in graph.inputs_of(task.name)):
            raise FlowError(
                f"{where}, but receives nothing by key, so its replicas change in the middle of a batch; give"
                " it a fixed parallelism, use .by_key(...) before it, or let commits be marks (checkpoint=)"
            )


def exact_tasks(graph: Graph, *, by_marks: bool = False) -> list[str]:
    """Tasks with state, and all that lie upstream of one: what comes twice from there would count twice.

    Where commits are epoch marks, transactional sinks are such tasks, too.
    """
    found: set[str] = set()
    for task in reversed(graph.tasks):
        is_exact = bool(task.state) or (by_marks and is_transactional(task))
        if is_exact or any(stream.receiver in found for stream in graph.outputs_of(task.name)):
            found.add(task.name)
    return [task.name for task in graph.tasks if task.name in found]


def what_is_lost(graph: Graph, why: str) -> list[str]:
    """For each task with state, what becomes of it where no commit has it, and why that is so."""
    return [f"{_named(task)} {LOST}: {why}" for task in graph.tasks if task.state]


def state_in_words(graph: Graph) -> list[str]:
    """What is kept and what is not; nothing if no task could keep anything."""
    kept = [f"{_named(task)} {COMMITTED}" for task in graph.tasks if task.state]
    elsewhere = [f"{ELSEWHERE} it {LOST}"] if kept else []
    undeclared = any(
        task.form in _OBJECTS and not task.state and not is_transactional(task) for task in graph.tasks
    )
    return [*kept, *elsewhere, *([UNDECLARED] if undeclared else [])]


def _named(task: Task) -> str:
    return f'state of {task.kind} "{task.name}" ({", ".join(spec.name for spec in task.state)})'


def _of_keys(task: Task) -> list[Spec]:
    return [spec for spec in task.state if spec.kind != "per replica"]
