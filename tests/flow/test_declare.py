"""From what a user gave to a task: names, settings, defaults, and refusals in the user's words."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from penstock.flow import Flow, FlowError, Output, elastic, task
from penstock.flow.graph import Task
from penstock.flow.parallelism import fixed
from tests.flow.random_flows import Partitioned, Splitter, alone, ignore


class Named(Partitioned):
    name = "tweets"


class Timed:
    every = "200 ms"
    latency_kind = "read_write"

    def process(self, item: object, out: object) -> None: ...

    def timer(self, out: object) -> None: ...


class Writer:
    def write(self, item: object) -> None: ...


class Talkative(Writer):
    outputs = ("echo",)


class TimedWriter(Writer):
    every = "1 s"


def source(flow: Flow | None = None) -> Output[Any]:
    return (flow or Flow("f")).source(Partitioned(2), name="s")


def only(flow: Flow, name: str) -> Task:
    return flow.graph().task(name)


@pytest.mark.parametrize(
    ("body", "given", "name", "defaults"),
    [
        (Partitioned(3), None, "partitioned", ("name",)),
        (Named(3), None, "tweets", ("name",)),
        (Named(3), "numbers", "numbers", ()),
    ],
)
def test_sources(body: Partitioned, given: str | None, name: str, defaults: tuple[str, ...]) -> None:
    flow = Flow("f")
    flow.source(body, name=given).sink(ignore)
    made = only(flow, name)
    assert (made.kind, made.form, made.body, made.parallelism) == ("source", "source", body, fixed(3))
    assert (made.outputs, made.defaults) == (("out",), defaults)


def test_a_source_has_an_error_policy_for_what_it_cannot_read() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="strict").sink(ignore, name="a")
    flow.source(Partitioned(1), name="lenient", on_error="skip").sink(ignore, name="b")
    assert (only(flow, "strict").on_error, only(flow, "lenient").on_error) == ("fail", "skip")
    unknown: Any = "retry"
    with pytest.raises(FlowError, match=r'source "odd" of flow "f": on_error'):
        flow.source(Partitioned(1), name="odd", on_error=unknown)


@pytest.mark.parametrize(
    ("given", "made"),
    [(None, fixed(4)), (2, fixed(2)), (elastic(1, 4, initial=2), elastic(1, 4, initial=2, pool=2))],
)
def test_replicas_of_a_source_share_its_splits(given: Any, made: Any) -> None:
    flow = Flow("f")
    flow.source(Partitioned(4), name="s", replicas=given).sink(ignore)
    assert only(flow, "s").parallelism == made


def test_replicas_that_would_have_nothing_to_read_are_refused() -> None:
    for given in (3, elastic(1, 3)):
        with pytest.raises(FlowError, match=r"3 replicas have only 2 splits to read: 0/2, 1/2; choose fewer"):
            Flow("f").source(Partitioned(2), name="s", replicas=given)
    with pytest.raises(FlowError, match=r'source "s" of flow "f": replicas must be a whole number'):
        Flow("f").source(Partitioned(2), name="s", replicas=0)
    growing = Partitioned(2)
    growing.discover = lambda: growing.splits  # type: ignore[attr-defined]
    Flow("f").source(growing, name="s", replicas=3)


def test_what_is_forwarded_from_a_source_has_a_fixed_number_of_replicas() -> None:
    flow = Flow("f")
    flow.source(Partitioned(4), name="s", replicas=elastic(1, 4)).forward().sink(ignore)
    with pytest.raises(FlowError, match="comes from a source whose replicas may change"):
        flow.graph()


def test_a_source_may_say_in_which_time_it_catches_up() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="patient").sink(ignore, name="a")
    flow.source(Partitioned(1), name="hurried", catch_up="30 s").sink(ignore, name="b")
    assert (only(flow, "patient").catch_up_s, only(flow, "hurried").catch_up_s) == (None, 30.0)
    for never in ("soon", 0, "-1 s"):
        with pytest.raises(FlowError, match=r'source "odd" of flow "f": catch_up: '):
            flow.source(Partitioned(1), name="odd", catch_up=never)


def split(splits: Any) -> Partitioned:
    made = Partitioned(1)
    made.splits = splits
    return made


def refusal_of(body: Any) -> str:
    with pytest.raises(FlowError) as refused:
        Flow("f").source(body)
    return str(refused.value)


@pytest.mark.parametrize("splits", [2, True, "two", None, {"a", "b"}, ["a", 1], ("a", ""), (None,)])
def test_splits_are_a_sequence_of_names(splits: Any) -> None:
    assert refusal_of(split(splits)) == (
        f'source "partitioned" of flow "f": attribute splits must be the names of its parts, not {splits!r}'
    )


@pytest.mark.parametrize("splits", [(), [], ("a", "b", "a")])
def test_there_is_at_least_one_split_and_no_name_twice(splits: Any) -> None:
    assert refusal_of(split(splits)) == (
        'source "partitioned" of flow "f": its splits must be one or more, each with a name of its own,'
        f" not {splits!r}"
    )


def test_something_without_splits_is_no_source() -> None:
    assert refusal_of(object()) == (
        'source "object" of flow "f": attribute splits must be the names of its parts, not None'
    )


def test_defaults_of_a_function() -> None:
    output = source()
    output.map(ignore).sink(print)
    made = only(output.flow, "ignore")
    assert made == Task(
        "ignore",
        "task",
        "map",
        ignore,
        fixed(1),
        "fail",
        "read_ready",
        None,
        ("out",),
        ("name", "parallelism", "on_error", "latency_kind"),
    )


def test_defaults_of_a_sink() -> None:
    output = source()
    output.sink(Writer)
    made = only(output.flow, "Writer")
    assert made == Task(
        "Writer",
        "sink",
        "sink_object",
        Writer,
        fixed(1),
        outputs=(),
        defaults=("name", "parallelism", "on_error"),
    )


class ManyWriter:
    def write_many(self, items: object) -> None: ...


def test_sizes_of_batches() -> None:
    output = source()
    output.map_batches(alone, name="a").flat_map_batches(alone, name="b", size=7).sink(ManyWriter, size=3)
    output.sink(ManyWriter, name="c")
    made = [only(output.flow, name) for name in ("a", "b", "ManyWriter", "c")]
    assert [(one.form, one.batch_size) for one in made] == [
        ("map_batches", 1024),
        ("flat_map_batches", 7),
        ("sink_batches", 3),
        ("sink_batches", 1024),
    ]
    assert ["size" in one.defaults for one in made] == [True, False, False, True]
    assert only(output.flow, "s").batch_size is None


def test_class_attributes_and_their_override() -> None:
    output = source()
    output.task(Timed).sink(print)
    output.task(Timed, name="faster", every="50 ms", latency_kind="read_ready").sink(ignore)
    timed, faster = only(output.flow, "Timed"), only(output.flow, "faster")
    assert (timed.every_ms, timed.latency_kind) == (200.0, "read_write")
    assert (faster.every_ms, faster.latency_kind) == (50.0, "read_ready")
    assert only(output.flow, "Timed").defaults == ("name", "parallelism", "on_error", "outputs")


def test_lambdas_are_numbered() -> None:
    output = source()
    output.map(lambda item: item).map(lambda item: item).filter(lambda item: item).sink(lambda item: None)
    assert [made.name for made in output.flow.graph().tasks] == ["s", "map_1", "map_2", "filter_1", "sink_1"]


def test_numbers_of_lambdas_avoid_names_already_taken() -> None:
    output = source()
    output.map(ignore, name="map_1").map(lambda item: item).sink(print)
    assert [made.name for made in output.flow.graph().tasks] == ["s", "map_1", "map_2", "print"]


def test_a_partial_has_the_name_and_the_settings_of_its_function() -> None:
    @task(parallelism=3)
    def scale(factor: int, item: int) -> int:
        return factor * item

    output = source()
    output.map(functools.partial(scale, 2)).sink(print)
    assert only(output.flow, "scale").parallelism == fixed(3)


@task(outputs=("a", "b"))
def with_outputs(item: object) -> None: ...


@task(every="1 s")
def with_every(item: object) -> None: ...


@task(latency_kind="read_write")
def slow(item: object) -> None: ...


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda s: s.map(ignore, parallelism=0),
            'task "ignore" of flow "f": parallelism must be a whole number of at least 1 or elastic(...),'
            " not 0",
        ),
        (
            lambda s: s.map(ignore, parallelism="4"),
            'task "ignore" of flow "f": parallelism must be a whole number of at least 1 or elastic(...),'
            " not '4'",
        ),
        (
            lambda s: s.map(ignore, on_error="ignore"),
            "task \"ignore\" of flow \"f\": on_error must be one of 'fail', 'skip', 'dead_letter',"
            " not 'ignore'",
        ),
        (
            lambda s: s.map(ignore, latency_kind="read"),
            "task \"ignore\" of flow \"f\": latency_kind must be one of 'read_ready', 'read_write',"
            " not 'read'",
        ),
        (
            lambda s: s.task(Timed, every="0 s"),
            'task "Timed" of flow "f": every: \'0 s\' is zero; it must be longer',
        ),
        (
            lambda s: s.task(Timed, every=-1),
            'task "Timed" of flow "f": every: -1 is a negative duration; it must be 0 or more',
        ),
        (
            lambda s: s.task(Splitter, outputs="hits"),
            'task "Splitter" of flow "f": outputs must be a tuple of names such as ("hits", "late"),'
            " not 'hits'",
        ),
        (
            lambda s: s.task(Splitter, outputs=()),
            'task "Splitter" of flow "f": outputs is empty; a task without outputs is a sink, so use'
            " .sink(...)",
        ),
        (
            lambda s: s.task(Splitter, outputs=("a", "a")),
            'task "Splitter" of flow "f": output "a" is listed twice; give every output its own name',
        ),
        (
            lambda s: s.task(Splitter, outputs=("a.b",)),
            'task "Splitter" of flow "f": output name \'a.b\' is not allowed; use letters, digits, _ and -,'
            " beginning with a letter or _",
        ),
        (
            lambda s: s.map(with_outputs),
            'task "with_outputs" of flow "f": a function has one output; use a class with process(item, out)'
            " for more",
        ),
        (
            lambda s: s.map(with_every),
            'task "with_every" of flow "f": a function has no timer; use a class with timer(out),'
            " or remove every",
        ),
        (
            lambda s: s.sink(with_outputs),
            'sink "with_outputs" of flow "f": a sink has no outputs; use .task(...) and give each output its'
            " own sink",
        ),
        (
            lambda s: s.sink(Talkative()),
            'sink "Talkative" of flow "f": a sink has no outputs; use .task(...) and give each output its own'
            " sink",
        ),
        (
            lambda s: s.sink(slow),
            'sink "slow" of flow "f": a sink writes no items, so its latency_kind is read_ready; remove it',
        ),
        (
            lambda s: s.sink(TimedWriter),
            'sink "TimedWriter" of flow "f": a sink has no timer; use .task(...) before it, or remove every',
        ),
        (
            lambda s: s.map(ignore, replicas=4),
            'flow "f": map: unknown setting "replicas"; the settings are'
            " name, parallelism, on_error, memory, timeout, concurrency, ordered, retries, chain,"
            " latency_kind, every, outputs, size, was",
        ),
        (
            lambda s: s.map(ignore, size=10),
            'task "ignore" of flow "f": size is for map_batches, flat_map_batches and sinks with'
            " write_many(items); remove it",
        ),
        (
            lambda s: s.sink(Writer, size=10),
            'sink "Writer" of flow "f": size is for map_batches, flat_map_batches and sinks with'
            " write_many(items); remove it",
        ),
        (
            lambda s: s.map_batches(ignore, size=0),
            'task "ignore" of flow "f": size must be a whole number of at least 1, not 0',
        ),
        (
            lambda s: s.flat_map_batches(ignore, size=True),
            'task "ignore" of flow "f": size must be a whole number of at least 1, not True',
        ),
        (
            lambda s: s.map_batches(with_every),
            'task "with_every" of flow "f": a function has no timer; use a class with timer(out),'
            " or remove every",
        ),
        (
            lambda s: s.map(ignore, chain="no"),
            'task "ignore" of flow "f": chain must be True or False, not \'no\';'
            " False keeps it in a process of its own",
        ),
        (lambda s: s.map(ignore, name=""), 'flow "f": map name is empty; give it at least one letter'),
        (
            lambda s: s.sink(ignore, name="my sink"),
            "flow \"f\": sink name 'my sink' is not allowed; use letters, digits, _ and -,"
            " beginning with a letter or _",
        ),
        (
            lambda s: s.map(type("Größe", (), {"__call__": lambda self, item: item})()),
            "flow \"f\": map name 'Größe' is not allowed; use letters, digits, _ and -, beginning with a"
            " letter or _; or give it one with name=",
        ),
    ],
)
def test_refused(use: Callable[[Any], object], message: str) -> None:
    output = source()
    with pytest.raises(FlowError) as refused:
        use(output)
    assert str(refused.value) == message


def test_elastic_is_taken_as_it_is() -> None:
    output = source()
    output.map(ignore, parallelism=elastic(1, 16, initial=4)).sink(print)
    assert only(output.flow, "ignore").parallelism == elastic(1, 16, initial=4, pool=8)
