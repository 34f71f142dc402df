"""Chained tasks do what they do apart, and so do the ids of what they send."""

from collections.abc import Sequence
from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import Flow, Out
from penstock.flow.graph import Graph
from penstock.flow.layers import lay_out
from penstock.wire import frames as wire
from penstock.wire.envelope import Envelope, decode
from penstock.wire.ids import ItemId
from penstock.wire.orders import Plan, Switches
from penstock.wire.routes import routes
from penstock.worker.chain import Chain
from penstock.worker.context import Context
from penstock.worker.outbox import Outbox
from penstock.worker.runner import Host, ItemRunner
from tests.flow.random_flows import Partitioned, ignore
from tests.worker.lone_worker import lone_worker

Script = list[tuple[str, Any]]
"""An item: what a task sends when it gets it, each a name of an output and an item for the next task."""

scripts: st.SearchStrategy[Script] = st.recursive(
    st.just([]),
    lambda inner: st.lists(st.tuples(st.sampled_from(("out", "late")), inner), max_size=3),
    max_leaves=12,
)
CUTS = ([["a"], ["b"], ["c"]], [["a", "b"], ["c"]], [["a"], ["b", "c"]], [["a", "b", "c"]])


class Play:
    """Sends what its items say, and notes what it saw."""

    outputs = ("out", "late")
    seen: ClassVar[list[tuple[str, str | None, ItemId | None, int]]] = []

    def open(self, context: Context) -> None:
        self.context = context

    def process(self, item: Script, out: Out[Script]) -> None:
        self.note()
        for output, child in item:
            out(child, output)
            self.note()

    def note(self) -> None:
        context = self.context
        self.seen.append((context.task, context.input, context.item_id, context.batch))


def flow() -> Flow:
    """a -> b -> c, replica to replica; whatever else they send goes to all replicas of a sink."""
    made = Flow("chained", ids=True)
    a = made.source(Partitioned(1), name="source").task(Play, name="a", parallelism=2)
    b = a.forward().task(Play, name="b", parallelism=2)
    c = b.forward().task(Play, name="c", parallelism=2)
    others = [a["late"], b["late"], c, c["late"]]
    made.sink(ignore, *(output.broadcast() for output in others), name="sink", parallelism=2)
    return made


GRAPH = flow().graph()


def switches(graph: Graph) -> Switches:
    return Switches(
        routes=routes(lay_out(graph)),
        active={task.name: task.parallelism.pool for task in graph.tasks},
        lifetime_ms={stream.name: 0.0 for stream in graph.streams},
        sampling=0.0,
    )


def fail(report: dict[str, Any]) -> None:
    raise AssertionError(report)


class Hosting:
    """A worker that hosts these tasks, without a process of its own."""

    def __init__(self, tasks: Sequence[str]) -> None:
        self.sent: list[Envelope] = []
        self._outbox = Outbox(lambda data: self.sent.append(decode(data[18:])), 1, with_ids=True)
        plan = Plan(GRAPH, "nowhere")
        host = Host(plan, self._outbox, fail)
        self._head = ItemRunner(host, tasks[0])
        self._outbox.streams = list(self._head.streams)
        self._head.context.batch = 9
        self._head.lay(switches(GRAPH))
        self._head.open()
        chain = Chain(self._head, self._outbox, lambda name: ItemRunner(host, name))
        chain.join(tasks[1:], switches(GRAPH))
        assert chain.tasks == tuple(tasks)

    def give(self, stream: str, item: Script, item_id: ItemId | None) -> None:
        self._head.context.input = stream
        self._head.context.item_id = item_id
        self._outbox.begin_item(item_id, None)
        self._head.step(item)


def played(items: Sequence[Script], cut: Sequence[Sequence[str]]) -> tuple[list[Any], list[Any]]:
    """What arrives at the sink and what the tasks saw, when they are chained like that."""
    Play.seen.clear()
    waiting = [("source->a", item, (5, number)) for number, item in enumerate(items)]
    arrived: list[Any] = []
    for tasks in cut:
        host = Hosting(tasks)
        for one in waiting:
            host.give(*one)
        waiting = []
        for envelope in host.sent:
            stream = GRAPH.streams[envelope.stream]
            for item, item_id in zip(envelope.items, envelope.ids or [], strict=True):
                if stream.receiver == "sink":
                    arrived.append((stream.name, item_id, item))
                else:
                    waiting.append((stream.name, item, item_id))  # type: ignore[arg-type]
    return sorted(arrived, key=repr), sorted(Play.seen, key=repr)


@given(st.lists(scripts, max_size=4))
def test_ids_and_context_are_the_same_however_tasks_are_chained(items: list[Script]) -> None:
    """So a batch may be replayed with other chains than those it was first processed with."""
    (arrived, seen), *others = [played(items, cut) for cut in CUTS]
    assert len({(item_id, stream) for stream, item_id, _ in arrived}) == len(arrived)
    assert others == [(arrived, seen)] * 3


def test_tasks_join_and_part_while_items_flow() -> None:
    """An order that comes while the first task waits for the others holds for them, too."""
    with lone_worker(flow()) as worker:
        worker.start("a", replica=1)
        worker.next_report()
        worker.change(chains=[["a", "b", "c"]], measure_every_s=0.01)
        worker.until_heard()
        worker.give(1, [[]], ids=[(5, 0)])
        worker.until(wire.JOIN)
        worker.change(active={**worker.switches.active, "sink": 1})
        worker.until_heard()
        worker.tell(wire.frame(wire.JOINED))
        worker.give(2, [[("out", [("out", [("out", "through")])]), ("late", "aside")]], ids=[(5, 1)])
        worker.until(wire.OUT)
        worker.until(wire.OUT)
        chained = [(target, worker.graph.streams[e.stream].name, e.items) for target, _, e in worker.out]
        assert chained == [(0, "c->sink", ["through"]), (0, "a.late->sink", ["aside"])]
        worker.change(chains=[])
        worker.until_heard()
        assert [*worker.frames_until(wire.JOIN)][-1][1] == b"[]", "who is hosted from now on"
        worker.tell(wire.frame(wire.JOINED))
        while worker.next_report()["chained"]:
            pass
        worker.out.clear()
        worker.give(3, [[("out", ["for b"])]], ids=[(5, 2)])
        report = worker.end()
        ((_, place, envelope),) = worker.out
        assert (place, worker.graph.streams[envelope.stream].name) == (1, "a->b")
        assert envelope.items == [["for b"]]
        assert report["chained"] == [], "what they did together was reported before"
