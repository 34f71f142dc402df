"""What the driver pickles for the workers of a run."""

from dataclasses import dataclass

from penstock.flow.graph import Graph


@dataclass(frozen=True, slots=True)
class Plan:
    """The graph with the users' functions, and where dead letters go."""

    graph: Graph
    dead_letters: str
