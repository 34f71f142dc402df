"""Bodies of tasks: mistakes are refused where the flow is declared."""

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from penstock.flow import FlowError
from penstock.flow.bodies import check_function, check_object, check_sink, is_async
from penstock.flow.graph import Form


def one(item: Any) -> Any: ...


def two(item: Any, other: Any) -> Any: ...


def many(item: Any) -> Iterator[Any]:
    yield item


async def later(item: Any) -> Any: ...


async def trickle(item: Any) -> AsyncIterator[Any]:
    yield item


class Plain:
    def process(self, item: Any, out: Any) -> None: ...


class Static:
    @staticmethod
    def process(item: Any, out: Any) -> None: ...


class Timed(Plain):
    def timer(self, out: Any) -> None: ...


class DeafTimer(Plain):
    def timer(self) -> None: ...


class Narrow:
    def process(self, item: Any) -> None: ...


class Yielding:
    def process(self, item: Any, out: Any) -> Iterator[Any]:
        yield item


class Async:
    async def process(self, item: Any, out: Any) -> None: ...

    async def open(self, context: Any) -> None: ...


class AsyncCall:
    async def __call__(self, item: Any) -> Any: ...


class AsyncTimer(Async):
    async def timer(self, out: Any) -> None: ...


class AsyncOpen(Plain):
    async def open(self, context: Any) -> None: ...


class AsyncWriter:
    async def write(self, item: Any) -> None: ...


class TrickleWriter:
    async def write(self, item: Any) -> AsyncIterator[Any]:
        yield item


class AsyncFlush:
    def write(self, item: Any) -> None: ...

    async def flush(self) -> None: ...


class Needy(Plain):
    def __init__(self, path: str) -> None: ...


class Writer:
    def write(self, item: Any) -> None: ...


class NeedyWriter(Writer):
    def __init__(self, path: str) -> None: ...


class WideWriter:
    def write(self, item: Any, other: Any) -> None: ...


class ManyWriter:
    def write_many(self, items: Any) -> None: ...


class DeafManyWriter:
    def write_many(self) -> None: ...


class BothWriter(Writer, ManyWriter): ...


class Committing(Writer):
    """`commit` alone is the sink's own affair."""

    def commit(self) -> None: ...


class Preparing(Writer):
    def prepare(self, epoch: int) -> str | None: ...

    def commit(self, description: str) -> None: ...


class DeafPreparing(Preparing):
    def prepare(self) -> str | None: ...  # type: ignore[override]


class LatePreparing(Preparing):
    async def prepare(self, epoch: int) -> str | None: ...  # type: ignore[override]


class DeafCommitting(Preparing):
    def commit(self) -> None: ...  # type: ignore[override]


class CallsLikeAGenerator:
    def __call__(self, item: Any) -> Iterator[Any]:
        yield item


FUNCTIONS: tuple[Form, ...] = ("map", "flat_map", "filter", "map_batches", "flat_map_batches")


@pytest.mark.parametrize("form", FUNCTIONS)
@pytest.mark.parametrize("body", [one, lambda item: item, str, int, print, "x".join, lambda *items: items])
def test_functions_accepted(form: Form, body: object) -> None:
    check_function(body, form, "here")


def test_flat_map_may_yield() -> None:
    check_function(many, "flat_map", "here")
    check_function(CallsLikeAGenerator(), "flat_map", "here")


@pytest.mark.parametrize(
    ("form", "body", "message"),
    [
        ("map", two, "here: the function must accept one argument, the item"),
        ("map", lambda: 1, "here: the function must accept one argument, the item"),
        ("map", 7, "here: map takes a function of one item, not 7"),
        ("filter", Plain, "here: filter takes a function, but this has process(item, out); use .task(...)"),
        ("map", many, "here: the function yields, so map would get a generator; use .flat_map(...)"),
        (
            "filter",
            CallsLikeAGenerator(),
            "here: the function yields, so filter would get a generator; use .flat_map(...)",
        ),
        ("map_batches", later, "here: a function of lists is not awaited; make it a plain function"),
        ("map_batches", 7, "here: map_batches takes a function of a list of items, not 7"),
        ("flat_map_batches", two, "here: the function must accept one argument, the list of items"),
        (
            "flat_map_batches",
            many,
            "here: the function yields, so flat_map_batches would get a generator; return a list",
        ),
        ("map", trickle, "here: the function yields, so map would get a generator; use .flat_map(...)"),
    ],
)
def test_functions_refused(form: Form, body: object, message: str) -> None:
    with pytest.raises(FlowError) as refused:
        check_function(body, form, "here")
    assert str(refused.value) == message


@pytest.mark.parametrize("body", [Plain, Plain(), Static, Static(), Needy("path")])
def test_objects_accepted(body: object) -> None:
    check_object(body, timed=False, where="here")


def test_timed_objects_accepted() -> None:
    check_object(Timed, timed=True, where="here")
    check_object(Timed(), timed=True, where="here")


@pytest.mark.parametrize(
    ("body", "timed", "message"),
    [
        (
            one,
            False,
            "here: there is no method process(item, out); use .map(...), .flat_map(...) or .filter(...)",
        ),
        (7, False, "here: there is no method process(item, out); add the method"),
        (Narrow, False, "here: process must accept two arguments, process(item, out)"),
        (Narrow(), False, "here: process must accept two arguments, process(item, out)"),
        (Yielding, False, "here: process yields, but nothing would read it; call out(item) instead"),
        (AsyncTimer, True, "here: timer is not awaited; make it a plain method"),
        (AsyncOpen(), False, "here: open is async and process is not; make both async, or none"),
        (Needy, False, "here: class Needy needs arguments; give an object of it instead"),
        (
            Plain,
            True,
            "here: every is given, but there is no method timer(out); add it or remove every",
        ),
        (Timed, False, 'here: timer(out) would never be called; say how often, as in every="200 ms"'),
        (DeafTimer, True, "here: timer must accept one argument, timer(out)"),
    ],
)
def test_objects_refused(body: object, timed: bool, message: str) -> None:
    with pytest.raises(FlowError) as refused:
        check_object(body, timed=timed, where="here")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (print, "sink_function"),
        (one, "sink_function"),
        ([].append, "sink_function"),
        (Writer, "sink_object"),
        (Writer(), "sink_object"),
        (NeedyWriter("path"), "sink_object"),
        (ManyWriter, "sink_batches"),
        (ManyWriter(), "sink_batches"),
        (BothWriter(), "sink_batches"),
        (Committing, "sink_object"),
        (Preparing, "sink_object"),
    ],
)
def test_sinks_accepted(body: object, form: Form) -> None:
    assert check_sink(body, "here") == form


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            7,
            "here: a sink is a function of one item, or a class or object with write(item) or"
            " write_many(items), not 7",
        ),
        (
            int,
            "here: a sink is a function of one item, or a class or object with write(item) or"
            " write_many(items), not <class 'int'>",
        ),
        (Plain, "here: a sink has write(item), but this has process(item, out); use .task(...)"),
        (two, "here: the function must accept one argument, the item"),
        (many, "here: the function yields, but nothing would read it; write the item instead"),
        (trickle, "here: the function yields, but nothing would read it; write the item instead"),
        (TrickleWriter, "here: write yields, but nothing would read it; write the item instead"),
        (AsyncFlush, "here: flush is async and write is not; make both async, or none"),
        (NeedyWriter, "here: class NeedyWriter needs arguments; give an object of it instead"),
        (WideWriter, "here: write must accept one argument, write(item)"),
        (DeafManyWriter, "here: write_many must accept one argument, write_many(items)"),
        (DeafPreparing(), "here: prepare must accept one argument, prepare(epoch)"),
        (LatePreparing, "here: prepare is not awaited; make it a plain method"),
        (DeafCommitting, "here: commit must accept one argument, commit(description)"),
    ],
)
def test_sinks_refused(body: object, message: str) -> None:
    with pytest.raises(FlowError) as refused:
        check_sink(body, "here")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("form", "body", "awaited"),
    [
        ("map", later, True),
        ("map", functools.partial(later), True),
        ("filter", AsyncCall(), True),
        ("flat_map", trickle, True),
        ("object", Async, True),
        ("object", Async(), True),
        ("sink_object", AsyncWriter, True),
        ("sink_function", later, True),
        ("map", one, False),
        ("map", AsyncCall, False),
        ("object", Plain(), False),
        ("sink_function", print, False),
    ],
)
def test_bodies_that_are_awaited_are_told_from_others(form: Form, body: object, awaited: bool) -> None:
    assert is_async(body, form) == awaited
