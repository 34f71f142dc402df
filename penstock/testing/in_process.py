"""`run`: a flow in the process of a test, without Spark and without waiting.

What a worker does with items is done by the worker's own parts (replica.py). Here is what Spark and the
bridge do: envelopes are carried from replica to replica, batches begin and end; the clock is a virtual one.
Envelopes are delivered in the order in which they were sent, all of them before any time passes, so that a
run is the same whenever it is repeated.
"""

import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import cloudpickle

from penstock.durations import Duration
from penstock.epochs.tables import even_table
from penstock.flow.chains import all_chains
from penstock.flow.errors import FlowError, JobFailed
from penstock.flow.flow import Flow
from penstock.flow.graph import Graph, Task
from penstock.flow.layers import lay_out
from penstock.flow.options import checked_duration_ms, checked_positive_ms
from penstock.flow.pickling import check_picklable
from penstock.flow.record import NO_METADATA
from penstock.io.letters import Letter, letters_path, whole_lines
from penstock.testing.given import NS_PER_MS, Items, given
from penstock.testing.replica import Replica
from penstock.testing.rescaling import Numbers, checked_numbers, move_state, number_in
from penstock.testing.result import Arrival, Result
from penstock.testing.virtual_clock import Turn, VirtualClock
from penstock.wire.codecs import coder_of
from penstock.wire.envelope import EnvelopeError, decode
from penstock.wire.frames import read_out
from penstock.wire.orders import Plan, Switches
from penstock.wire.reports import Failure
from penstock.wire.routes import StreamRoute
from penstock.worker.asking import Give
from penstock.worker.outbox import Outbox
from penstock.worker.steps import Step


class _Stopped(BaseException):
    """The flow has failed. No `Exception`: nothing of the user's code may go on with the next item."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def run(
    flow: Flow,
    inputs: Mapping[str, Items] | None = None,
    *,
    until: Duration | None = None,
    commit: Duration | None = None,
    chains: Sequence[Sequence[str]] = (),
    replicas: Numbers | None = None,
    write: bool = False,
) -> Result:
    """Run a flow in this process and on a virtual clock; what its sinks got.

    `inputs` are the items of each source by its name, all there at the start, or at the time of `at(...)`; a
    source that is not named runs by itself. The flow ends when its sources have run dry, or at the time
    `until`. It commits (calls `flush()`) at its end, and every `commit` if that is given. Sinks only collect,
    unless `write` is true: then they do what they do, too. `chains` are tasks that share a process.
    `replicas` are the numbers of replicas of tasks, one for each batch between two commits.

    What would stop the flow on Spark is raised here: `JobFailed`, with the error of the task as its cause.

    >>> flow = Flow("doubles")
    >>> class Numbers:
    ...     splits = ("all",)
    >>> sink = flow.source(Numbers(), name="numbers").map(lambda item: 2 * item).sink(print)
    >>> run(flow, {"numbers": [1, 2, 3]})["print"]
    [2, 4, 6]
    """
    graph = flow.graph()
    until_ms = None if until is None else checked_duration_ms(until, "until")
    commit_ms = None if commit is None else checked_positive_ms(commit, "commit")
    sources = _sources(graph, inputs or {}, endless_is_fine=until is not None)
    check_picklable(graph)
    numbers = checked_numbers(graph, replicas or {}, commit)
    with _letters_directory(graph) as letters:
        engine = _Engine(graph, sources, chains, letters, numbers, write=write)
        try:
            engine.run(_ns(until_ms), _ns(commit_ms))
        except _Stopped as stopped:
            raise JobFailed(stopped.failure.words(graph.name)) from stopped.__context__
        finally:
            engine.release()
        return engine.result()


class _Engine:
    """All replicas of a flow, and the envelopes between them."""

    def __init__(
        self,
        graph: Graph,
        sources: Mapping[str, Any],
        chains: Sequence[Sequence[str]],
        letters: str,
        numbers: Numbers,
        *,
        write: bool,
    ) -> None:
        self._graph = graph
        self._sources = sources
        self._letters = letters
        self._numbers = numbers
        self._clock = VirtualClock()
        self._on_the_way: deque[tuple[int, memoryview]] = deque()
        self._arrivals: dict[str, list[Arrival]] = {t.name: [] for t in graph.tasks if t.kind == "sink"}
        self._failure: Failure | None = None
        self._batch = 0
        self._switches = self._switches_of(0)
        # As on Spark: every replica has a copy of its own, and none of them is the test's.
        self._plan = cloudpickle.dumps(Plan(_bare(graph, write=write), letters))
        self._chains = {chain[0]: chain for chain in _heads(graph, chains)}
        self._replicas: dict[str, list[Replica]] = {}
        for head in self._chains:
            count = number_in(numbers, graph, head, 0)
            self._replicas[head] = [self._made(head, number) for number in range(count)]
            for number, replica in enumerate(self._replicas[head]):
                if replica.state is not None:
                    replica.state.own_only(even_table(1, count).groups_of(number))
        self._gone: list[Replica] = []
        self._coders = [coder_of(stream.codec, stream.name) for stream in graph.streams]
        self._receivers = [self._replicas.get(stream.receiver, []) for stream in graph.streams]
        self._take_lists = [replica for replica in self._all() if replica.takes_lists]

    def _made(self, head: str, number: int) -> Replica:
        """A replica of a task, and of what is chained to it."""
        return Replica(
            _with_source(cloudpickle.loads(self._plan), head, self._sources),
            self._chains[head],
            number,
            self._switches,
            self._clock,
            self._post,
            self._fail,
            partial(_Watch, self._arrivals, number, self._clock.now_ns),
            self._deliver,
        )

    def run(self, until_ns: int | None, commit_ns: int | None) -> None:
        """Until the end."""
        for replica in self._all():
            replica.open()
        for replica in self._all():
            replica.begin(self._batch)
        if commit_ns is not None:
            self._await_commit(commit_ns)
        running = [replica for replica in self._all() if not replica.is_dry]
        while running or until_ns is not None:
            self._deliver()
            if not self._clock.advance(until_ns):
                break
            while running and running[-1].is_dry:
                running.pop()
        if until_ns is not None:
            self._clock.jump(until_ns)
        self._end_batch(last=True)

    def release(self) -> None:
        """Close what the end of the processes would close."""
        for replica in (*self._gone, *self._all()):
            replica.release()

    def result(self) -> Result:
        """What came of it."""
        skipped: Counter[str] = Counter()
        for replica in (*self._gone, *self._all()):
            for runner in replica.runners:
                skipped[runner.task.name] += runner.failures.skipped
        return Result(
            self._arrivals,
            _read_letters(self._letters, self._graph, self._numbers),
            {task: count for task, count in skipped.items() if count},
            self._clock.now_ns() / 1e9,
        )

    def _switches_of(self, batch: int) -> Switches:
        """Partition i of a stream is replica i of its receiver; nothing is sampled."""
        graph = self._graph
        counts = {task.name: number_in(self._numbers, graph, task.name, batch) for task in graph.tasks}
        return Switches(
            routes={
                stream.name: StreamRoute(layer=0, first=0, pool=counts[stream.receiver], place=0, local=True)
                for stream in graph.streams
            },
            active=counts,
            lifetime_ms={stream.name: stream.batch_lifetime_ms for stream in graph.streams},
            sampling=0.0,
        )

    def _all(self) -> list[Replica]:
        """In the order of the flow."""
        return [replica for replicas in self._replicas.values() for replica in replicas]

    def _post(self, frame: bytes) -> None:
        out = read_out(frame)
        if out is not None:
            self._on_the_way.append(out)

    def _deliver(self) -> None:
        self._carry()
        while self._take_lists and any(replica.work_off() for replica in self._take_lists):
            self._carry()

    def _carry(self) -> None:
        while self._on_the_way:
            partition, data = self._on_the_way.popleft()
            try:
                envelope = decode(data, self._coders)
            except EnvelopeError as problem:  # what pickles and cannot be unpickled
                raise JobFailed(f'flow "{self._graph.name}": an envelope: {problem}') from problem
            self._receivers[envelope.stream][partition].take(envelope)

    def _end_batch(self, *, last: bool) -> None:
        """A task ends when all of its senders have ended and what they sent has arrived."""
        self._deliver()
        for head, replicas in self._replicas.items():
            staying = 0 if last else number_in(self._numbers, self._graph, head, self._batch + 1)
            for number, replica in enumerate(replicas):
                replica.end(last=number >= staying)
            self._deliver()

    def _rescale(self) -> None:
        """Between two batches: as many replicas as the next one has."""
        self._switches = self._switches_of(self._batch)
        for replica in self._all():
            replica.follow(self._switches)
        for head, replicas in self._replicas.items():
            count = number_in(self._numbers, self._graph, head, self._batch)
            if count == len(replicas):
                continue
            added = [self._made(head, number) for number in range(len(replicas), count)]
            for replica in added:
                if replica.state is not None:
                    replica.state.own_only(())
                replica.open()
            after = [*replicas[:count], *added]
            stores = [[r.state for r in some if r.state is not None] for some in (replicas, after)]
            if stores[0]:
                move_state(*stores)
            self._gone += replicas[count:]
            replicas[:] = after
        self._take_lists = [replica for replica in self._all() if replica.takes_lists]

    def _await_commit(self, every_ns: int) -> None:
        def commit() -> None:
            self._end_batch(last=False)
            self._batch += 1
            if self._numbers:
                self._rescale()
            for replica in self._all():
                replica.begin(self._batch)
            self._await_commit(every_ns)

        self._clock.at(self._clock.now_ns() + every_ns, Turn.COMMIT, commit)

    def _fail(self, report: dict[str, Any]) -> NoReturn:
        if self._failure is None:  # users' code may have held up the first one
            self._failure = Failure(**report["failed"])
        raise _Stopped(self._failure)


class _Watch:
    """Writes down what a replica of a sink has taken."""

    def __init__(
        self,
        arrivals: Mapping[str, list[Arrival]],
        replica: int,
        now_ns: Callable[[], int],
        outbox: Outbox,
    ) -> None:
        self._outbox = outbox
        self._arrivals = arrivals
        self._replica = replica
        self._now_ns = now_ns

    def timed(self, step: Step, task: str) -> Step:
        """The step of a sink, which is written down if it did not raise."""
        if task not in self._arrivals:
            return step

        def write(item: Any) -> None:
            step(item)
            self._note(item, task)

        return write

    def timed_batch(self, step: Step, task: str) -> Step:
        """The same for a sink that takes lists."""
        if task not in self._arrivals:
            return step

        def write_many(items: list[Any]) -> None:
            step(items)
            for item in items:
                self._note(item, task)

        return write_many

    def given(self, give: Give, task: str) -> Give:
        """The end of a call of an async sink, which is written down likewise."""
        if task not in self._arrivals:
            return give

        def written(item: Any, answer: Any) -> None:
            give(item, answer)
            self._note(item, task)

        return written

    def pausing(self, pause: Callable[[float], None]) -> Callable[[float], None]:
        """Pauses take no time here."""
        return pause

    def _note(self, item: Any, task: str) -> None:
        known = self._outbox.metadata or NO_METADATA
        at_s = self._now_ns() / 1e9
        arrival = Arrival(item, self._replica, at_s, known.headers, known.timestamp, known.key)
        self._arrivals[task].append(arrival)


def _sources(graph: Graph, inputs: Mapping[str, Items], *, endless_is_fine: bool) -> dict[str, Any]:
    """What is read in place of each source, or the source itself."""
    declared = {task.name: task for task in graph.tasks if task.kind == "source"}
    for name in inputs:
        if name not in declared:
            raise FlowError(
                f'inputs: flow "{graph.name}" has no source "{name}"; its sources are {", ".join(declared)}'
            )
    return {
        name: given(graph.name, name, _splits(task), inputs[name])
        if name in inputs
        else _itself(graph.name, task, endless_is_fine=endless_is_fine)
        for name, task in declared.items()
    }


def _splits(source: Task) -> Sequence[str]:
    body: Any = source.body
    return tuple(body.splits)


def _itself(flow: str, source: Task, *, endless_is_fine: bool) -> Any:
    where = f'source "{source.name}" of flow "{flow}"'
    if not hasattr(source.body, "open"):
        raise FlowError(f'{where} cannot be read; give its items, as in inputs={{"{source.name}": [...]}}')
    if getattr(source.body, "endless", False) and not endless_is_fine:
        raise FlowError(f'{where} never ends; say for how long it runs, as in until="10 s"')
    return source.body


def _bare(graph: Graph, *, write: bool) -> Graph:
    """The graph without its sources, which are given to their own replicas only, and with sinks that drop."""
    tasks = [
        replace(task, body=None)
        if task.kind == "source"
        else replace(task, form="sink_function", body=_drop, concurrency=None, retries=None)
        if task.kind == "sink" and not write
        else task
        for task in graph.tasks
    ]
    return replace(graph, tasks=tuple(tasks))


def _drop(item: Any) -> None:
    """A sink that only collects."""


def _with_source(plan: Plan, name: str, sources: Mapping[str, Any]) -> Plan:
    if name not in sources:
        return plan
    tasks = [replace(t, body=sources[name]) if t.name == name else t for t in plan.graph.tasks]
    return replace(plan, graph=replace(plan.graph, tasks=tuple(tasks)))


def _heads(graph: Graph, chains: Sequence[Sequence[str]]) -> list[list[str]]:
    """Who shares a process with whom, in the order of the flow."""
    if not chains:
        return [[task.name] for task in graph.tasks]
    found = all_chains(lay_out(graph), chains)
    led = {chain[0]: chain for chain in found}
    sources = {task.name for task in graph.tasks if task.kind == "source"}
    return [
        led.get(task.name, [task.name]) for task in graph.tasks if task.name in led or task.name in sources
    ]


@contextmanager
def _letters_directory(graph: Graph) -> Iterator[str]:
    """For dead letters, if a task writes any: a disk may take longer than the whole run."""
    if all(task.on_error != "dead_letter" for task in graph.tasks):
        yield ""
    else:
        with tempfile.TemporaryDirectory(prefix="penstock-letters-") as directory:
            yield directory


def _read_letters(directory: str, graph: Graph, numbers: Numbers) -> list[Letter]:
    found: list[Letter] = []
    if not directory:
        return found
    for task in graph.tasks:
        for replica in range(max(task.parallelism.initial, *numbers.get(task.name, (0,)))):
            path = letters_path(directory, task.name, replica)
            if Path(path).exists():
                stretch, _ = whole_lines(path, 0)
                found += [letter for letter, _ in stretch.letters()]
    return found


def _ns(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds * NS_PER_MS)
