"""What a user declares: the graph, its tasks, wirings and constraints, and where they are placed (pure)."""

from penstock.flow.decorator import task
from penstock.flow.errors import FlowError
from penstock.flow.flow import Flow
from penstock.flow.output import Keyed, Output, Sink
from penstock.flow.parallelism import Parallelism, elastic
from penstock.flow.record import Record
from penstock.flow.retries import Retries, retry
from penstock.flow.typed import Out

__all__ = [
    "Flow",
    "FlowError",
    "Keyed",
    "Out",
    "Output",
    "Parallelism",
    "Record",
    "Retries",
    "Sink",
    "elastic",
    "retry",
    "task",
]
