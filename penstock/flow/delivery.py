"""How often what a flow puts out is there, by what its sinks offer."""

from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph, Task


def is_transactional(task: Task) -> bool:
    """Whether a sink prepares what it was given and it is committed later (`penstock.io.TransactionalSink`).

    The driver asks it for what commits, or to commit.
    """
    return task.kind == "sink" and _has(task, "prepare") and (_has(task, "commit") or _has(task, "committer"))


def needs_marks(task: Task) -> bool:
    """Whether a sink can do nothing where commits are boundaries."""
    return getattr(task.body, "needs_marks", False) is True


def refuse_without_marks(graph: Graph, why: str) -> None:
    """Commits are boundaries, and why: not for sinks that need epoch marks."""
    for task in graph.tasks:
        if needs_marks(task):
            raise FlowError(
                f'sink "{task.name}" of flow "{graph.name}" has exactly_once=True, which needs commits that'
                f" are marks, and here {why}; leave exactly_once out, or let them be marks"
            )


def delivery_in_words(graph: Graph) -> list[str]:
    """For each sink how often an item is there, whatever ends and is started again."""
    return [f'sink "{task.name}" {_words(graph, task)}' for task in graph.tasks if task.kind == "sink"]


def _words(graph: Graph, task: Task) -> str:
    is_by_id = getattr(task.body, "by_id", False) is True
    if is_transactional(task) and is_by_id:
        return "has every item exactly once"
    if needs_marks(task):
        return "has every item exactly once, and needs a checkpoint where commits are marks"
    if is_transactional(task):
        return "has every item exactly once where commits are marks, else at least once"
    if is_by_id:
        return "is given every item at least once, and can tell by the id what comes again"
    told = ", with the same id each time" if graph.ids else ""
    return f"is given every item at least once{told}"


def _has(task: Task, method: str) -> bool:
    return callable(getattr(task.body, method, None))
