"""How often what a flow puts out is there, by what its sinks offer."""

from penstock.flow.graph import Graph, Task


def is_transactional(task: Task) -> bool:
    """Whether a sink prepares what it was given and commits it later (`penstock.io.TransactionalSink`)."""
    return task.kind == "sink" and all(
        callable(getattr(task.body, name, None)) for name in ("prepare", "commit")
    )


def delivery_in_words(graph: Graph) -> list[str]:
    """For each sink how often an item is there, whatever ends and is started again."""
    return [f'sink "{task.name}" {_words(graph, task)}' for task in graph.tasks if task.kind == "sink"]


def _words(graph: Graph, task: Task) -> str:
    is_by_id = getattr(task.body, "by_id", False) is True
    if is_transactional(task) and is_by_id:
        return "has every item exactly once"
    if is_transactional(task):
        return "has every item exactly once with marks=True, else at least once"
    if is_by_id:
        return "is given every item at least once, and can tell by the id what comes again"
    told = ", with the same id each time" if graph.ids else ""
    return f"is given every item at least once{told}"
