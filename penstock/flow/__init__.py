"""What a user declares: the graph, its tasks, wirings and constraints, and where they are placed (pure)."""

from penstock.flow.decorator import task
from penstock.flow.errors import FlowError
from penstock.flow.flow import Flow
from penstock.flow.output import Output, Sink
from penstock.flow.parallelism import Parallelism, elastic

__all__ = ["Flow", "FlowError", "Output", "Parallelism", "Sink", "elastic", "task"]
