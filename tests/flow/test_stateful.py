"""Tasks that declare state: what is refused, and what `explain` says."""

import operator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Out, state
from penstock.flow.stateful import exact_tasks, refuse_moving_state, what_is_lost


class Numbers:
    splits = ("all",)


NUMBERS: Any = Numbers()


class Counting:
    seen = state.value(0, ttl="1 h")

    def process(self, item: int, out: Out[int]) -> None: ...


class Summing:
    total = state.per_replica(0, merge=operator.add)

    def process(self, item: int, out: Out[int]) -> None: ...


class Plain:
    def process(self, item: int, out: Out[int]) -> None: ...


class Awaited:
    seen = state.value(0)

    async def process(self, item: int, out: Out[int]) -> None: ...


class Slotted:
    __slots__ = ()
    seen = state.value(0)

    def process(self, item: int, out: Out[int]) -> None: ...


class Silent:
    silence = state.timer()

    def process(self, item: int, out: Out[int]) -> None: ...


class Timed:
    silence = state.timer()

    def write(self, item: int) -> None: ...

    @silence.fires
    def end(self, out: object) -> None: ...


class Shelf:
    def write(self, item: int) -> None: ...


class Many:
    seen = state.value(0)

    def write_many(self, items: list[int]) -> None: ...


def parity(item: int) -> int:
    return item % 2


def declared(task: Any, **options: Any) -> penstock.Flow:
    flow = penstock.Flow("f")
    flow.source(NUMBERS, name="numbers").by_key(parity).task(task, **options).sink(print)
    return flow


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (Awaited, 'task "Awaited" of flow "f" is async and declares state; calls for one key would overlap'),
        (Slotted, "declares state, so its class needs a __dict__; remove its __slots__"),
        (Silent, 'timer "silence" calls nothing; write a method under @silence.fires'),
    ],
)
def test_what_cannot_have_state_is_refused(task: type, words: str) -> None:
    with pytest.raises(penstock.FlowError, match=words):
        declared(task)


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        (Timed, "a sink has no timers; use .task"),
        (Many, r"write_many\(items\) cannot have; use write\(item\)"),
    ],
)
def test_what_sinks_cannot_have_is_refused(sink: Any, words: str) -> None:
    flow = penstock.Flow("f")
    with pytest.raises(penstock.FlowError, match=words):
        flow.source(NUMBERS, name="numbers").by_key(parity).sink(sink)


def test_state_of_keys_needs_keys_on_every_input() -> None:
    flow = penstock.Flow("f")
    numbers = flow.source(NUMBERS, name="numbers")
    flow.task(Counting, numbers.by_key(parity), numbers.map(abs), name="count").sink(print)
    words = r'task "count" .* declares state of keys \(seen\), but stream "abs->count" is wired round_robin'
    with pytest.raises(penstock.FlowError, match=words):
        flow.graph()


def test_a_value_per_replica_needs_no_keys_and_a_process_of_its_own() -> None:
    flow = penstock.Flow("f")
    flow.source(NUMBERS, name="numbers").map(abs).forward().task(Summing, name="sum").sink(print)
    assert not flow.graph().task("sum").chain
    assert flow.graph().task("abs").chain


def test_explain_says_what_is_declared_and_what_is_lost() -> None:
    said = declared(Counting, name="count").explain()
    assert "; state seen (value, 1 h to live)" in said
    assert 'state of task "count" (seen) is in every commit: if a worker ends' in said
    assert "with a checkpoint in an object store other than S3 (gs:, abfs:), or on a cluster without" in said
    assert "in attributes that it does not declare" not in said


UNDECLARED = (
    "what a task or sink keeps in attributes that it does not declare (penstock.state) is in no commit, stays"
    " behind when keys move to another replica (a fixed parallelism forbids that), and ends when tasks are"
    " chained or taken apart (chain=False forbids that)"
)


def told_of(sink: Any) -> str:
    flow = penstock.Flow("f")
    flow.source(NUMBERS, name="numbers").map(abs).sink(sink)
    return flow.explain()


def test_explain_says_what_becomes_of_other_attributes(tmp_path: Path) -> None:
    assert f"\nstate\n  {UNDECLARED}\n" in declared(Plain).explain()
    assert UNDECLARED in told_of(Shelf())
    for sink in (print, penstock.jsonl(tmp_path)):
        assert "\nstate\n" not in told_of(sink), "a function, or what it keeps is prepared and committed"


def test_replicas_must_stay_where_their_state_cannot_move() -> None:
    several = penstock.elastic(1, 4)
    graph = declared(Counting, name="count", parallelism=several).graph()
    refuse_moving_state(graph, committed=True)
    with pytest.raises(
        penstock.FlowError, match=r'task "count" .* is elastic: its state is not committed here'
    ):
        refuse_moving_state(graph, committed=False)
    refuse_moving_state(declared(Plain, parallelism=several).graph(), committed=False)
    flow = penstock.Flow("f")
    flow.source(NUMBERS, name="numbers").task(Summing, name="sum", parallelism=several).sink(print)
    with pytest.raises(penstock.FlowError, match=r'task "sum" .* receives nothing by key'):
        refuse_moving_state(flow.graph(), committed=True)
    refuse_moving_state(flow.graph(), committed=True, by_marks=True)


def test_what_no_commit_has_is_told() -> None:
    graph = declared(Counting, name="count").graph()
    (words,) = what_is_lost(graph, "it is an object store")
    assert words.startswith('state of task "count" (seen) is in the memory of its workers and in no commit')
    assert words.endswith("when the flow is started again: it is an object store")


def test_state_depends_on_all_that_is_upstream() -> None:
    flow = penstock.Flow("f")
    numbers, others = flow.source(NUMBERS, name="numbers"), flow.source(NUMBERS, name="others")
    counts = numbers.map(abs, name="shown").by_key(parity).task(Counting, name="count")
    flow.sink(print, counts, others.map(abs, name="aside"))
    assert exact_tasks(flow.graph()) == ["numbers", "shown", "count"]


def test_output_of_transactional_sinks_depends_on_all_that_is_upstream_where_commits_are_marks() -> None:
    flow = penstock.Flow("f", ids=True)
    numbers, others = flow.source(NUMBERS, name="numbers"), flow.source(NUMBERS, name="others")
    numbers.map(abs, name="shown").sink(penstock.jsonl("here"), name="files")
    others.map(abs, name="aside").sink(print)
    graph = flow.graph()
    assert exact_tasks(graph, by_marks=True) == ["numbers", "shown", "files"]
    assert exact_tasks(graph) == []


def test_explain_says_how_often_output_is_there() -> None:
    flow = penstock.Flow("f", ids=True)
    numbers = flow.source(NUMBERS, name="numbers")
    numbers.sink(penstock.jsonl("here"), name="files")
    numbers.sink(penstock.dedup_jsonl("there"), name="once")
    numbers.sink(print)
    numbers.sink(penstock.to_kafka("topic", servers="localhost:9"), name="topic")
    said = flow.explain()
    assert '  sink "files" has every item exactly once where commits are marks, else at least once\n' in said
    assert '  sink "once" has every item exactly once\n' in said
    assert '  sink "print" is given every item at least once, with the same id each time\n' in said
    assert '  sink "topic" is given every item at least once, with the same id each time\n' in said


def test_short_forms_check_what_they_are_given() -> None:
    flow = penstock.Flow("f")
    keyed = flow.source(NUMBERS, name="numbers").by_key(parity)
    with pytest.raises(penstock.FlowError, match="reduce takes a function of two arguments, not 3"):
        keyed.reduce(3)  # type: ignore[arg-type]
    with pytest.raises(penstock.FlowError, match="distinct: within: '0 s' is zero"):
        keyed.distinct("0 s")
    keyed.count().sink(print)
    assert flow.graph().task("count").defaults[0] == "name"
