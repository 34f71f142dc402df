"""Latency constraints (thesis, sections 4.1 and 4.2): from what the user wrote to a checked sequence.

A template sequence is a tuple of connected tasks and streams, alternating. It may begin with a stream or
with a task that is no source (a source reads nothing, so it has no latency), and end with either.
Several constraints must not share a stream and have the same window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from penstock.durations import Duration, format_ms
from penstock.flow.errors import FlowError
from penstock.flow.graph import Constraint, Graph
from penstock.flow.names import check_name
from penstock.flow.options import checked_positive_ms
from penstock.flow.output import Output, Sink
from penstock.flow.paths import connected, paths_between

if TYPE_CHECKING:
    from penstock.flow.flow import Flow

Element = str | Output[Any] | Sink

DEFAULT_WINDOW: Final = "5 s"
STATISTICS: Final = ("mean", "p95", "p99")


@dataclass(frozen=True, slots=True)
class Wish:
    """A constraint as declared; its elements are names that are looked up when the graph is complete.

    With `ends_only`, `sequence` holds only the start and the end of a path.
    """

    name: str
    latency_ms: float
    statistic: str
    window_s: float
    sequence: tuple[str, ...]
    ends_only: bool
    defaults: tuple[str, ...]
    share: float | None = None

    @staticmethod
    def of(
        flow: "Flow",
        latency: Duration,
        sequence: Sequence[Element] | None,
        *,
        start: Element | None,
        end: Element | None,
        window: Duration | None,
        statistic: str | None,
        share: float | None,
        name: str | None,
        default_name: str,
    ) -> "Wish":
        """Check everything that does not need the graph."""
        chosen = default_name if name is None else check_name(name, f'flow "{flow.name}": constraint name')
        where = f'constraint "{chosen}" of flow "{flow.name}"'
        settings = {"name": name, "statistic": statistic, "window": window}
        if statistic is not None and statistic not in STATISTICS:
            raise FlowError(f'{where}: statistic must be "mean", "p95" or "p99", not {statistic!r}')
        if share is not None and not 0.5 < share < 1.0:
            raise FlowError(f"{where}: share must be between 0.5 and 1, such as 0.99, not {share!r}")
        elements = _elements(sequence, start, end, where)
        return Wish(
            name=chosen,
            latency_ms=checked_positive_ms(latency, f"{where}: latency"),
            statistic=statistic or "mean",
            window_s=checked_positive_ms(DEFAULT_WINDOW if window is None else window, f"{where}: window")
            / 1000,
            sequence=tuple(_element_name(flow, element, where) for element in elements),
            ends_only=sequence is None,
            defaults=tuple(setting for setting, given in settings.items() if given is None),
            share=share,
        )


def resolve(graph: Graph, wishes: Sequence[Wish]) -> tuple[Constraint, ...]:
    """The constraints of a graph, each checked by itself and all together."""
    constraints = tuple(_resolved(graph, wish) for wish in wishes)
    owner: dict[str, str] = {}
    for constraint in constraints:
        for element in constraint.sequence:
            if "->" in element and owner.setdefault(element, constraint.name) != constraint.name:
                raise FlowError(
                    f'constraints "{owner[element]}" and "{constraint.name}" of flow "{graph.name}" share'
                    f' stream "{element}"; let only one of them contain it'
                )
        if constraint.window_s != constraints[0].window_s:
            raise FlowError(
                f'constraints "{constraints[0].name}" and "{constraint.name}" of flow "{graph.name}" have'
                f" windows of {format_ms(constraints[0].window_s * 1000)} and"
                f" {format_ms(constraint.window_s * 1000)}; give all constraints the same window"
            )
    return constraints


def _elements(sequence: Any, start: Element | None, end: Element | None, where: str) -> tuple[Element, ...]:
    if sequence is None:
        if start is None or end is None:
            raise FlowError(f"{where}: give a sequence, or both start= and end=")
        return (start, end)
    if start is not None or end is not None:
        raise FlowError(f"{where}: give either a sequence or start= and end=, not both")
    if isinstance(sequence, str) or not isinstance(sequence, Sequence):
        raise FlowError(f"{where}: the sequence must be a list of tasks and streams, not {sequence!r}")
    if not sequence:
        raise FlowError(f"{where}: the sequence is empty; name at least one task or stream")
    return tuple(sequence)


def _element_name(flow: "Flow", element: object, where: str) -> str:
    if isinstance(element, str):
        return element
    if not isinstance(element, Output | Sink):
        raise FlowError(f'{where}: an element is a task, or a name such as "a" or "a->b", not {element!r}')
    if element.flow is not flow:
        raise FlowError(
            f'{where}: task "{element.name}" belongs to flow "{element.flow.name}"; constrain it there'
        )
    return element.name


def _resolved(graph: Graph, wish: Wish) -> Constraint:
    where = f'constraint "{wish.name}" of flow "{graph.name}"'
    sequence = tuple(_found(graph, element, where) for element in wish.sequence)
    if wish.ends_only:
        sequence = _only_path(graph, sequence[0], sequence[1], where)
    for element, following in pairwise(sequence):
        if not connected(graph, element, following):
            raise FlowError(
                f'{where}: "{element}" is not followed by "{following}";'
                f" after it may come {_followers(graph, element)}"
            )
    first = sequence[0]
    if "->" not in first and graph.task(first).kind == "source":
        streams = " or ".join(f'"{stream.name}"' for stream in graph.outputs_of(first))
        raise FlowError(
            f'{where} begins with source "{first}", which reads nothing and so has no latency;'
            f" begin with its stream {streams}"
        )
    return Constraint(
        wish.name, sequence, wish.latency_ms, wish.statistic, wish.window_s, wish.defaults, wish.share
    )


def _found(graph: Graph, element: str, where: str) -> str:
    """The name of a task or stream of the graph; "a.out->b" may be written out for a first output, too."""
    if "->" not in element:
        if element not in {task.name for task in graph.tasks}:
            known = ", ".join(task.name for task in graph.tasks)
            raise FlowError(f'{where}: there is no task "{element}"; the tasks are {known}')
        return element
    for stream in graph.streams:
        if element in (stream.name, f"{stream.sender}.{stream.output}->{stream.receiver}"):
            return stream.name
    known = ", ".join(stream.name for stream in graph.streams)
    raise FlowError(f'{where}: there is no stream "{element}"; the streams are {known}')


def _only_path(graph: Graph, start: str, end: str, where: str) -> tuple[str, ...]:
    paths = paths_between(graph, start, end, limit=2)
    if not paths:
        raise FlowError(f'{where}: no path leads from "{start}" to "{end}"; check their order')
    if len(paths) > 1:
        shown = " and ".join(f"[{', '.join(path)}]" for path in paths)
        raise FlowError(
            f'{where}: several paths lead from "{start}" to "{end}", among them {shown};'
            " give the whole sequence"
        )
    return paths[0]


def _followers(graph: Graph, element: str) -> str:
    if "->" in element:
        return f'only "{graph.stream(element).receiver}"'
    streams = [f'"{stream.name}"' for stream in graph.outputs_of(element)]
    return " or ".join(streams) if streams else "nothing, for it is a sink"
