"""Handles of outputs: wiring views never change the output they come from."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from penstock.flow import Flow, FlowError, Output
from penstock.flow.graph import Stream
from tests.flow.random_flows import Partitioned, Splitter, alone, ignore


def numbers(flow: Flow | None = None) -> Output[Any]:
    return (flow or Flow("f")).source(Partitioned(2), name="numbers")


def stream_of(view: Output[Any]) -> Stream:
    view.sink(ignore, name="k", parallelism=2)
    return view.flow.graph().stream("numbers->k")


def test_defaults() -> None:
    assert stream_of(numbers()) == Stream(
        "numbers->k",
        "numbers",
        "out",
        "k",
        defaults=("wiring", "codec", "batch_lifetime_ms", "batch_bytes"),
    )


@pytest.mark.parametrize(
    ("view", "wiring"),
    [
        (Output.round_robin, "round_robin"),
        (Output.broadcast, "broadcast"),
        (Output.forward, "forward"),
        (lambda output: output.by_key(hash), "key"),
    ],
)
def test_wirings(view: Callable[[Output[Any]], Output[Any]], wiring: str) -> None:
    stream = stream_of(view(numbers()))
    assert stream.wiring == wiring
    assert "wiring" not in stream.defaults
    assert stream.key is (hash if wiring == "key" else None)


def test_balanced_is_round_robin_with_an_eye_on_queues() -> None:
    stream = stream_of(numbers().balanced().batched("20 ms"))
    assert (stream.wiring, stream.balanced) == ("round_robin", True)
    assert "wiring" not in stream.defaults
    assert not stream_of(numbers().round_robin()).balanced
    with pytest.raises(FlowError, match="already wired round_robin"):
        numbers().balanced().broadcast()


def test_views_combine_and_leave_the_output_alone() -> None:
    plain = numbers()
    view = plain.by_key(hash).batched(timedelta(milliseconds=20), bytes=100).coded("bytes")
    stream = stream_of(view)
    assert (stream.wiring, stream.key, stream.batch_lifetime_ms, stream.batch_bytes, stream.codec) == (
        "key",
        hash,
        20.0,
        100,
        "bytes",
    )
    assert stream.defaults == ()
    plain.sink(ignore, name="other")
    assert plain.flow.graph().stream("numbers->other").wiring == "round_robin"


def test_batched_alone_leaves_the_byte_limit_to_the_default() -> None:
    stream = stream_of(numbers().batched("20 ms"))
    assert (stream.batch_bytes, stream.defaults) == (65536, ("wiring", "codec", "batch_bytes"))


def test_named_outputs() -> None:
    flow = Flow("f")
    split = numbers(flow).task(Splitter())
    split.sink(ignore, name="first")
    split["hits"].sink(ignore, name="also")
    split["late"].broadcast().sink(ignore, name="rest")
    names = [stream.name for stream in flow.graph().outputs_of("Splitter")]
    assert names == ["Splitter->first", "Splitter->also", "Splitter.late->rest"]
    assert flow.graph().stream("Splitter.late->rest").output == "late"


def test_every_kind_of_reader() -> None:
    output = numbers()
    made = [output.map(ignore, name="m"), output.flat_map(list), output.filter(bool), output.task(Splitter)]
    made += [output.map_batches(alone, name="mb"), output.flat_map_batches(alone, name="fmb")]
    for reader in made:
        reader.sink(ignore, name=f"after_{reader.name}")
    forms = {task.name: task.form for task in output.flow.graph().tasks}
    assert {forms[name] for name in ("m", "list", "bool", "Splitter", "mb", "fmb", "after_m")} == {
        "map",
        "flat_map",
        "filter",
        "object",
        "map_batches",
        "flat_map_batches",
        "sink_function",
    }


def test_readers_of_several_outputs() -> None:
    flow = Flow("f")
    one, two = numbers(flow), flow.source(Partitioned(1), name="two")
    one.map(ignore, two.broadcast(), name="both").sink(ignore, "two", name="k")
    assert [stream.name for stream in flow.graph().streams] == [
        "numbers->both",
        "two->both",
        "two->k",
        "both->k",
    ]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda output: output.by_key(hash).broadcast(),
            'output "numbers" of flow "f" is already wired key; choose one wiring for each reader',
        ),
        (
            lambda output: output.by_key("word"),
            'output "numbers" of flow "f": by_key takes a function of one item, not \'word\'',
        ),
        (
            lambda output: output.batched("fast"),
            'output "numbers" of flow "f": batched: lifetime: \'fast\' is not a duration; write for example'
            ' "20 ms" (us, ms, s, min or h), a timedelta or a number of seconds',
        ),
        (
            lambda output: output.batched("1 ms", bytes=0),
            'output "numbers" of flow "f": batched: bytes must be a whole number of at least 1, not 0',
        ),
        (
            lambda output: output.coded("json"),
            "output \"numbers\" of flow \"f\": codec must be one of 'pickle', 'bytes', 'arrow',"
            " or an object with dumps(item) and loads(data), not 'json'",
        ),
        (
            lambda output: output["late"],
            'task "numbers" of flow "f" has no output "late"; its outputs are out',
        ),
        (
            lambda output: output.flow.output("numbers.late").by_key(3),
            'output "numbers.late" of flow "f": by_key takes a function of one item, not 3',
        ),
    ],
)
def test_refused(use: Callable[[Output[Any]], object], message: str) -> None:
    with pytest.raises(FlowError) as refused:
        use(numbers())
    assert str(refused.value) == message
