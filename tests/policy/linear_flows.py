"""Flows whose tasks scale linearly, as snapshots: what DS2 assumes, so that its answers can be computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.stats.snapshot import InstanceStats, Snapshot, StreamStats, TaskStats, check_snapshot


@dataclass(frozen=True, slots=True)
class Operator:
    """A task that processes `capacity_per_s` a replica and emits `selectivity` items for each."""

    capacity_per_s: float
    selectivity: float = 1.0
    elastic: bool = True
    max: int | None = None


@dataclass(frozen=True, slots=True)
class LinearFlow:
    """Sources with rates, operators in topological order, and who sends to whom."""

    sources: Mapping[str, float]
    operators: Mapping[str, Operator]
    edges: Sequence[tuple[str, str]]

    def snapshot(self, parallelism: Mapping[str, int], interval_s: float = 10.0) -> Snapshot:
        """What is measured with these replicas when an overloaded task loses what it cannot take."""
        output = dict(self.sources)
        tasks = {
            name: TaskStats(kind="source", parallelism=1, rate_total=rate, emitted_total=rate * interval_s)
            for name, rate in self.sources.items()
        }
        for name, operator in self.operators.items():
            replicas = parallelism[name]
            arriving = sum(output[a] for a, b in self.edges if b == name)
            processed = min(arriving, replicas * operator.capacity_per_s) * interval_s
            output[name] = processed / interval_s * operator.selectivity
            useful_s = processed / operator.capacity_per_s / replicas
            each = InstanceStats(
                useful_s=useful_s,
                processed=processed / replicas,
                emitted=processed * operator.selectivity / replicas,
            )
            tasks[name] = TaskStats(
                kind="task",
                parallelism=replicas,
                elastic=operator.elastic,
                max=operator.max,
                processed_total=processed,
                emitted_total=processed * operator.selectivity,
                useful_s=useful_s,
                utilization=useful_s / interval_s,
                instances=[each] * replicas if replicas <= 50 else None,
            )
        streams = [StreamStats(origin=a, receiver=b) for a, b in self.edges]
        made = Snapshot(interval_s=interval_s, tasks=tasks, streams=streams)
        check_snapshot(made)
        return made


# Sentences in, 20 words out of each: 1M sentences/min, 100k sentences/min and 1M words/min a replica.
WORD_COUNT = LinearFlow(
    {"source": 1e6 / 60},
    {"flat_map": Operator(1e5 / 60, 20.0), "count": Operator(1e6 / 60, 0.0)},
    [("source", "flat_map"), ("flat_map", "count")],
)


@st.composite
def linear_flows(draw: st.DrawFn) -> LinearFlow:
    """Random graphs of one to three sources and one to six operators, each reached by a source."""
    sources = {f"s{i}": draw(st.floats(1, 1e3)) for i in range(draw(st.integers(1, 3)))}
    operators: dict[str, Operator] = {}
    edges: list[tuple[str, str]] = []
    for i in range(draw(st.integers(1, 6))):
        earlier = [*sources, *operators]
        senders = draw(st.lists(st.sampled_from(earlier), min_size=1, max_size=3, unique=True))
        edges.extend((sender, f"t{i}") for sender in senders)
        operators[f"t{i}"] = Operator(
            draw(st.floats(10, 1e4)), draw(st.floats(0.1, 2)), draw(st.booleans()), None
        )
    return LinearFlow(sources, operators, edges)


def parallelisms(flow: LinearFlow) -> st.SearchStrategy[dict[str, int]]:
    """Any replicas for the operators of a flow."""
    return st.fixed_dictionaries({name: st.integers(1, 40) for name in flow.operators})
