"""Random flows for property tests: any DAG, wiring, fan-out, fan-in, elastic tasks and forward streams."""

from typing import Any

from hypothesis import strategies as st

from penstock.flow import Flow, Output, Parallelism, elastic
from penstock.flow.parallelism import fixed
from penstock.io.splits import numbered_splits

FEW = (fixed(1), fixed(2), fixed(3), elastic(1, 16), elastic(2, 12, initial=3, pool=5))


class Partitioned:
    """A source of so many splits with nothing in them."""

    def __init__(self, splits: int) -> None:
        self.splits = numbered_splits(splits)

    def open(self, split: str, offset: Any, clock: Any) -> Any:
        raise AssertionError("flows are only declared here")


class Splitter:
    """A task with two outputs."""

    outputs = ("hits", "late")

    def process(self, item: object, out: Any) -> None:
        raise AssertionError("flows are only declared here")


def ignore(item: object) -> None:
    """A task and a sink."""


def alone(items: list[Any]) -> list[list[Any]]:
    """A task that takes lists."""
    return [[item] for item in items]


@st.composite
def flows(draw: st.DrawFn, *, most_tasks: int = 8) -> Flow:
    """A valid flow; every output of every task has at least one reader."""
    flow = Flow("random", ids=draw(st.booleans()))
    spec: dict[str, Parallelism] = {}
    unread: dict[tuple[str, str | None], Output[Any]] = {}
    outputs: list[Output[Any]] = []

    def read(receiver: Parallelism) -> list[Output[Any]]:
        chosen = draw(st.lists(st.sampled_from(outputs), min_size=1, max_size=3, unique=True))
        for output in chosen:
            unread.pop((output.name, output.output), None)
        return [_wired(draw, output, forward=spec[output.name] == receiver) for output in chosen]

    def offer(*offered: Output[Any]) -> None:
        outputs.extend(offered)
        unread.update(((output.name, output.output), output) for output in offered)

    for number in range(draw(st.integers(1, 3))):
        splits = draw(st.integers(1, 3))
        source = flow.source(Partitioned(splits), name=f"source{number}")
        spec[source.name] = fixed(splits)
        offer(source)
    for number in range(draw(st.integers(0, most_tasks))):
        parallelism = draw(st.sampled_from(FEW))
        name = f"task{number}"
        inputs = read(parallelism)
        if draw(st.booleans()):
            task = flow.map(ignore, *inputs, name=name, parallelism=parallelism)
            offer(task)
        else:
            task = flow.task(Splitter, *inputs, name=name, parallelism=parallelism)
            offer(task, task["late"])
        spec[name] = parallelism
    for number, output in enumerate(list(unread.values())):
        parallelism = draw(st.sampled_from(FEW))
        wired = _wired(draw, output, forward=spec[output.name] == parallelism)
        wired.sink(ignore, name=f"sink{number}", parallelism=parallelism)
    return flow


def _wired(draw: st.DrawFn, output: Output[Any], *, forward: bool) -> Output[Any]:
    wiring = draw(st.sampled_from(("default", "key", "broadcast", *(["forward"] * 3 if forward else []))))
    if wiring == "key":
        return output.by_key(hash)
    if wiring == "broadcast":
        return output.broadcast()
    return output.forward() if wiring == "forward" else output
