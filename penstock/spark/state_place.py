"""Where the state of tasks is committed: in the checkpoint, if all workers see its files."""

from pathlib import Path

from pyspark.sql import SparkSession

from penstock.epochs.boundary import IN_CHECKPOINT, Place, begin
from penstock.epochs.errors import LogError
from penstock.epochs.looking import Kept, look
from penstock.epochs.storage import LocalStorage
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.spark.directory import Directory


def state_root(spark: SparkSession, address: str) -> Path | None:
    """Where in a checkpoint; None if it is not on this machine, or its workers are not."""
    local = Directory(spark, address).local
    is_here = (spark.sparkContext.master or "").startswith("local")
    return local / IN_CHECKPOINT if local is not None and is_here else None


def state_place(spark: SparkSession, address: str, graph: Graph, batch: int) -> Place | None:
    """Begin an attempt after that batch; None if no task has state, or nobody could commit it."""
    tasks = [task.name for task in graph.tasks if task.state]
    root = state_root(spark, address)
    if root is None or (not tasks and not root.exists()):
        return None
    try:
        return begin(LocalStorage(root), str(root), batch, tasks)
    except LogError as problem:
        raise FlowError(
            f"the state in the checkpoint {address} cannot be used: {problem}, or begin with a new checkpoint"
            " directory"
        ) from None


def committed_state(spark: SparkSession, address: str, task: str) -> list[Kept]:
    """What a task keeps, as the checkpoint has it."""
    root = state_root(spark, address)
    if root is None:
        raise FlowError(f"no state is committed in the checkpoint {address}: it, or Spark, is elsewhere")
    try:
        return look(root.parent).kept.get(task, [])
    except LogError as problem:
        raise FlowError(str(problem)) from None
