"""Codecs in a flow: errors belong to the task that sent, or to the task that reads, by its policy."""

import json
import threading
from typing import Any

import msgspec
import pytest

import penstock
from penstock import FlowError, Record
from penstock.io.letters import Letter
from penstock.testing import run
from penstock.wire.frames import FAILED
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import lone_worker


class Given:
    splits = ("all",)


class Halves:
    """Refuses to code 13, and cannot read 7."""

    def dumps(self, item: int) -> bytes:
        if item == 13:
            raise ValueError("no thirteen")
        return b"%d" % item

    def loads(self, data: bytes) -> int:
        if data == b"7":
            raise KeyError("seven")
        return int(data)


class Point(msgspec.Struct):
    x: int


def drop(item: Any) -> None:
    """The end of the flows below."""


def as_it_is(item: Any) -> Any:
    return item


def flow_of(codec: Any, lifetime: str = "0 ms", *, sent: str = "fail", read: str = "fail") -> penstock.Flow:
    flow = penstock.Flow("coded")
    given: Any = Given()
    made: Any = flow.source(given, name="numbers").map(as_it_is, name="send", on_error=sent)  # type: ignore[call-overload]
    made.coded(codec).batched(lifetime).map(as_it_is, name="read", on_error=read).sink(drop, name="out")
    return flow


@pytest.mark.parametrize("lifetime", ["0 ms", "5 ms"])
@pytest.mark.parametrize(
    ("codec", "items"),
    [(Halves(), [1, 2, 3]), (json, [{"a": [1]}, "x"]), (penstock.msgspec_codec(Point), [Point(1), Point(2)])],
)
def test_items_arrive(codec: Any, items: list[Any], lifetime: str) -> None:
    assert run(flow_of(codec, lifetime), {"numbers": items})["out"] == items


@pytest.mark.parametrize("lifetime", ["0 ms", "5 ms"])
def test_errors_follow_the_policy_of_their_task(lifetime: str) -> None:
    flow = flow_of(Halves(), lifetime, sent="skip", read="dead_letter")
    result = run(flow, {"numbers": [6, Record(7, timestamp=70), 8, 13, 14]})
    assert result["out"] == [6, 8, 14]
    assert result.skipped == {"send": 1}
    (letter,) = result.dead_letters
    assert (letter.task, letter.item, letter.pickle) == ("read", "b'7'", None)
    assert letter.error == "CodecError: codec Halves of stream \"send->read\": loads raised KeyError: 'seven'"
    assert (letter.input, letter.metadata and letter.metadata.timestamp) == ("send->read", 70)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (
            13,
            'task "send", replica 0: CodecError: codec Halves of stream "send->read": dumps raised Value',
        ),
        (7, 'task "read", replica 0: CodecError: codec Halves of stream "send->read": loads raised KeyError'),
    ],
)
def test_an_error_stops_the_flow_if_it_is_to(item: int, words: str) -> None:
    with pytest.raises(penstock.JobFailed) as caught:
        run(flow_of(Halves()), {"numbers": [item]})
    assert words in str(caught.value)


def test_a_worker_puts_unread_items_aside(tmp_path: Any) -> None:
    flow = penstock.Flow("lone")
    source: Any = flow.source(Partitioned(1), name="source")
    coded = source.coded(Halves()).map(as_it_is, name="read", on_error="dead_letter")
    coded.sink(drop, name="sink")
    with lone_worker(flow, str(tmp_path)) as worker:
        worker.start("read")
        worker.give(1, [6, 7, 8])
        worker.give(2, [7, 9], careful=True)
        report = worker.end()["worker"]
        assert worker.items() == [6, 8, 9]
        assert (report["items_in"], report["dead_lettered"]) == (5, 2)
    lines = (tmp_path / "read-0.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=Letter).item for line in lines] == ["b'7'", "b'7'"]


def no_copy() -> Any:
    raise RuntimeError("no copies")


class OneWay:
    def __reduce__(self) -> Any:
        return no_copy, ()


def test_an_envelope_that_cannot_be_read_names_task_and_cause() -> None:
    flow = penstock.Flow("lone")
    flow.source(Partitioned(1), name="source").map(as_it_is, name="read").sink(drop, name="sink")
    with lone_worker(flow) as worker:
        worker.start("read")
        worker.give(1, [OneWay()])
        failed = worker.until(FAILED)["failed"]
    assert (failed["task"], failed["replica"]) == ("read", 0)
    assert failed["problem"].startswith(
        "reading an envelope raised EnvelopeError: items cannot be read: no copies"
    )


class Locked(Halves):
    def __init__(self) -> None:
        self.lock = threading.Lock()


def test_a_codec_that_cannot_travel_is_refused() -> None:
    with pytest.raises(FlowError, match=r'^the codec of stream "send->read" of flow "coded" cannot be sent'):
        run(flow_of(Locked()), {"numbers": [1]})


def test_a_struct_of_the_script_is_refused_on_spark() -> None:
    struct = msgspec.defstruct("Order", [("customer", int)], module="__main__")
    words = 'codec of stream "send->read" of flow "coded": struct Order is defined in the script that is run'
    with pytest.raises(FlowError, match=words):
        penstock.run(flow_of(penstock.msgspec_codec(struct)))


@pytest.mark.parametrize("codec", [3, Halves, "json", None])
def test_what_is_no_codec_is_refused(codec: Any) -> None:
    with pytest.raises(FlowError) as caught:
        flow_of(codec)
    assert str(caught.value) == (
        "output \"send\" of flow \"coded\": codec must be one of 'pickle', 'bytes', 'arrow',"
        f" or an object with dumps(item) and loads(data), not {codec!r}"
    )


def test_explain_names_the_codec() -> None:
    assert "codec msgspec of Point;" in flow_of(penstock.msgspec_codec(Point)).explain()
    assert "codec json;" in flow_of(json).explain()
