"""`Flow`: what a user declares. It only collects; `graph()` puts the parts together and validates them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Unpack, overload

from penstock.durations import Duration
from penstock.flow.assemble import Link, assemble
from penstock.flow.constraints import Element, Wish
from penstock.flow.declare import declare_source, declare_task
from penstock.flow.errors import FlowError
from penstock.flow.explain import explain
from penstock.flow.graph import Form, Graph, OnError, Parallelism, Task
from penstock.flow.names import check_name
from penstock.flow.options import TaskOptions
from penstock.flow.output import Output, Sink
from penstock.flow.typed import GivesRecords, Item, Made, Many, Processes, Readable, Writes, WritesMany


class Flow:
    """A dataflow of Python tasks with the latency constraints it must keep.

    >>> flow = Flow("doubles")
    >>> class Numbers:
    ...     splits = ("left", "right")
    >>> numbers = flow.source(Numbers(), name="numbers")
    >>> sink = numbers.map(lambda item: 2 * item, name="double").sink(print)
    >>> [stream.name for stream in flow.graph().streams]
    ['numbers->double', 'double->print']
    """

    def __init__(self, name: str, *, ids: bool = False) -> None:
        self.name = check_name(name, "flow name")
        self.ids = ids
        self._tasks: dict[str, Task] = {}
        self._links: list[Link] = []
        self._wishes: list[Wish] = []

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, ids={self.ids})"

    @overload
    def source(
        self,
        source: GivesRecords[Item],
        *,
        name: str | None = None,
        on_error: OnError = "fail",
        replicas: int | Parallelism | None = None,
        catch_up: Duration | None = None,
    ) -> Output[Item]: ...

    @overload
    def source(
        self,
        source: Readable[Item],
        *,
        name: str | None = None,
        on_error: OnError = "fail",
        replicas: int | Parallelism | None = None,
        catch_up: Duration | None = None,
    ) -> Output[Item]: ...

    def source(
        self,
        source: Any,
        *,
        name: str | None = None,
        on_error: OnError = "fail",
        replicas: int | Parallelism | None = None,
        catch_up: Duration | None = None,
    ) -> Output[Any]:
        """Add a source; it has one replica for each of its splits, or `replicas` that deal them out.

        `on_error` is for what it reads and can make no item of, as a record that cannot be decoded.
        `catch_up` is the time in which policies should have it read what has piled up before it.
        """
        self._add(declare_source(self.name, source, name, on_error, replicas=replicas, catch_up=catch_up))
        return Output(self, next(reversed(self._tasks)))

    @overload
    def map(
        self,
        body: Callable[[Item], Awaitable[Made]],
        *inputs: Output[Item] | str,
        **options: Unpack[TaskOptions],
    ) -> Output[Made]: ...

    @overload
    def map(
        self, body: Callable[[Item], Made], *inputs: Output[Item] | str, **options: Unpack[TaskOptions]
    ) -> Output[Made]: ...

    def map(
        self, body: Callable[[Any], Any], *inputs: Output[Any] | str, **options: Unpack[TaskOptions]
    ) -> Output[Any]:
        """Add a task that makes one item of each item."""
        return self._reader("map", body, inputs, options)

    def flat_map(
        self,
        body: Callable[[Item], Many[Made]],
        *inputs: Output[Item] | str,
        **options: Unpack[TaskOptions],
    ) -> Output[Made]:
        """Add a task that makes any number of items of each item."""
        return self._reader("flat_map", body, inputs, options)

    def filter(
        self, body: Callable[[Item], object], *inputs: Output[Item] | str, **options: Unpack[TaskOptions]
    ) -> Output[Item]:
        """Add a task that passes on the items for which `body(item)` is true."""
        return self._reader("filter", body, inputs, options)

    def map_batches(
        self,
        body: Callable[[list[Item]], Sequence[Made]],
        *inputs: Output[Item] | str,
        **options: Unpack[TaskOptions],
    ) -> Output[Made]:
        """Add a task that makes one item of each item, and is given all that have arrived, at most `size`."""
        return self._reader("map_batches", body, inputs, options)

    def flat_map_batches(
        self,
        body: Callable[[list[Item]], Sequence[Iterable[Made]]],
        *inputs: Output[Item] | str,
        **options: Unpack[TaskOptions],
    ) -> Output[Made]:
        """Add a task that makes any number of items of each item, and is given all that have arrived."""
        return self._reader("flat_map_batches", body, inputs, options)

    def task(
        self,
        body: Processes[Item, Made] | Callable[[], Processes[Item, Made]],
        *inputs: Output[Item] | str,
        **options: Unpack[TaskOptions],
    ) -> Output[Made]:
        """Add a task from a class or object with `process(item, out)`."""
        return self._reader("object", body, inputs, options)

    def sink(
        self,
        body: Callable[[Item], object]
        | Writes[Item]
        | WritesMany[Item]
        | Callable[[], Writes[Item]]
        | Callable[[], WritesMany[Item]],
        *inputs: Output[Item] | str,
        **options: Unpack[TaskOptions],
    ) -> Sink:
        """Add a sink: a function of one item, or a class or object with `write(item)` or `write_many`."""
        return Sink(self, self._reader("sink_function", body, inputs, options).name)

    def output(self, name: str) -> Output[Any]:
        """An output by name, "task" or "task.output"; the task may be declared later."""
        sender, dot, output = name.partition(".")
        check_name(sender, f'flow "{self.name}": task name')
        if dot:
            check_name(output, f'flow "{self.name}": output name')
        return Output(self, sender, output if dot else None)

    def constrain(
        self,
        latency: Duration,
        sequence: Sequence[Element] | None = None,
        *,
        start: Element | None = None,
        end: Element | None = None,
        window: Duration | None = None,
        statistic: str | None = None,
        share: float | None = None,
        name: str | None = None,
    ) -> None:
        """Bound the latency of items through a sequence of connected tasks and streams.

        Give the whole sequence, or `start` and `end` if only one path leads from the one to the other.
        Percentiles (`statistic="p95"` or `"p99"`), and the `share` of windows in which the bound is to be
        held, are for the policy `penstock`.
        """
        taken = {wish.name for wish in self._wishes}
        number = next(n for n in range(1, len(taken) + 2) if f"c{n}" not in taken)
        wish = Wish.of(
            self,
            latency,
            sequence,
            start=start,
            end=end,
            window=window,
            statistic=statistic,
            share=share,
            name=name,
            default_name=f"c{number}",
        )
        if wish.name in taken:
            raise FlowError(
                f'flow "{self.name}" has two constraints "{wish.name}"; give one of them another name='
            )
        self._wishes.append(wish)

    def graph(self) -> Graph:
        """The validated graph of everything declared so far."""
        return assemble(self.name, tuple(self._tasks.values()), self._links, self._wishes, ids=self.ids)

    def explain(self) -> str:
        """The plan in words: layers, slots, wirings, constraints, defaults applied, settings for Spark."""
        return explain(self.graph())

    def check_output(self, task: str, output: str) -> None:
        """Refuse an output that a task declared so far does not have."""
        known = self._tasks.get(task)
        if known is not None and output not in known.outputs:
            raise FlowError(
                f'task "{task}" of flow "{self.name}" has no output "{output}";'
                f" its outputs are {', '.join(known.outputs)}"
            )

    def _reader(
        self, form: Form, body: object, inputs: tuple[Output[Any] | str, ...], options: TaskOptions
    ) -> Output[Any]:
        task = declare_task(self.name, form, body, options, taken=self._tasks.keys())
        where = f'{task.kind} "{task.name}" of flow "{self.name}"'
        if not inputs:
            raise FlowError(f"{where} reads nothing; give it at least one input")
        links = [self._link(given, task.name, where) for given in inputs]
        self._add(task)
        self._links.extend(links)
        return Output(self, task.name)

    def _link(self, given: object, receiver: str, where: str) -> Link:
        if isinstance(given, str):
            given = self.output(given)
        if isinstance(given, Sink):
            raise FlowError(
                f'{where} reads sink "{given.name}", but a sink has no outputs; read a task instead'
            )
        if not isinstance(given, Output):
            raise FlowError(f"{where}: an input is an output of a task or its name, not {given!r}")
        if given.flow is not self:
            raise FlowError(
                f'{where} reads "{given.name}" of flow "{given.flow.name}"; both must be in one flow'
            )
        return Link(given.name, given.output, receiver, given.wire)

    def _add(self, task: Task) -> None:
        if task.name in self._tasks:
            raise FlowError(
                f'flow "{self.name}" has two tasks "{task.name}";'
                f' give one of them another name, as in name="{task.name}_2"'
            )
        self._tasks[task.name] = task
