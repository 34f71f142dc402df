"""Ids of items: numbers that stand for names, the same for ever and however a flow is declared."""

import os
import subprocess
import sys
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import Flow
from penstock.flow.errors import FlowError
from penstock.wire import ids
from penstock.wire.ids import check_distinct, origin_of, stream_code
from tests.flow.random_flows import Partitioned, ignore

ORIGINS = {
    ("numbers", "0/1"): 239_095_024_928_472,
    ("numbers", "0/2"): 132_345_063_088_904,
    ("numbers", "1/2"): 153_324_887_905_313,
    ("größe", "tweets-2026.jsonl"): 180_963_318_610_007,
}
STREAMS = {
    "numbers->work": 0xFBF256D9 << 32,
    "work->out": 0x0DCAE692 << 32,
    "work.late->größe": 0x4304924E << 32,
}
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


def test_codes_are_the_same_for_ever() -> None:
    """A sink knows by them what it has written already: other numbers would write it twice."""
    assert {origin: origin_of(*origin) for origin in ORIGINS} == ORIGINS
    assert {stream: stream_code(stream) for stream in STREAMS} == STREAMS


def test_codes_are_the_same_in_another_process() -> None:
    program = (
        "from penstock.wire.ids import origin_of, stream_code;"
        f"print([origin_of(*o) for o in {list(ORIGINS)!r}] + [stream_code(s) for s in {list(STREAMS)!r}])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "5", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert said.stdout.strip() == str([*ORIGINS.values(), *STREAMS.values()])


@given(names, names)
def test_codes_leave_room_for_their_numbers(source: str, split: str) -> None:
    assert 0 <= origin_of(source, split) < 1 << 48
    code = stream_code(f"{source}->{split}")
    assert 0 <= code < 1 << 64
    assert code % (1 << 32) == 0, "the numbers of items are below"


@given(names, names, names)
def test_where_the_source_ends_and_the_split_begins_matters(start: str, middle: str, end: str) -> None:
    assert origin_of(start + middle, end) != origin_of(start, middle + end)


def codes(order: tuple[str, ...]) -> dict[str, Any]:
    flow = Flow("f", ids=True)
    for source in order:
        flow.source(Partitioned(2), name=source)
    for source in reversed(order):
        flow.sink(ignore, source, name=f"{source}_sink")
    graph = flow.graph()
    origins = {
        (task.name, split): origin_of(task.name, split)
        for task in graph.tasks
        if task.kind == "source"
        for split in task.body.splits  # type: ignore[attr-defined]
    }
    return {"origins": origins, "streams": {s.name: stream_code(s.name) for s in graph.streams}}


def test_codes_do_not_depend_on_the_order_of_declaration() -> None:
    first, *others = [codes(order) for order in permutations("abc")]
    assert others == [first] * 5
    check_distinct(first["origins"], first["streams"])


@given(st.lists(st.tuples(names, names)), st.lists(names))
def test_names_may_be_said_twice(origins: list[tuple[str, str]], streams: list[str]) -> None:
    check_distinct([*origins, *origins], [*streams, *streams])


def test_a_source_may_have_the_digest_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand at different places of an id."""
    monkeypatch.setattr(ids, "origin_of", lambda source, split: 7)
    monkeypatch.setattr(ids, "stream_code", lambda stream: 7)
    check_distinct([("a", "0/1")], ["a->b"])


def test_splits_with_one_digest_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    same = SimpleNamespace(digest=lambda: b"same..")
    monkeypatch.setattr(ids, "blake2b", lambda name, digest_size: same)
    with pytest.raises(FlowError) as refused:
        check_distinct([("tweets", "0/1"), ("lists", "file-3")], ["tweets->a"])
    assert str(refused.value) == (
        'the ids of split "0/1" of source "tweets" and split "file-3" of source "lists" cannot be told apart;'
        " rename one of them"
    )


def test_streams_with_one_digest_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "crc32", lambda name: 7)
    with pytest.raises(FlowError) as refused:
        check_distinct([("tweets", "0/1")], ["a->b", "b->c"])
    assert str(refused.value) == (
        'the ids of stream "a->b" and stream "b->c" cannot be told apart; rename one of them'
    )


def test_streams_that_happen_to_have_one_digest() -> None:
    """Found by trying many: of 32 bits there are not so many."""
    first, second = "task78367->out", "source->work_19031"
    assert stream_code(first) == stream_code(second)
    with pytest.raises(FlowError, match="cannot be told apart"):
        check_distinct([], [first, second])
