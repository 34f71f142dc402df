"""What cannot travel to workers is found before anything starts, down to the part that is to blame."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from penstock.flow import Flow, FlowError
from penstock.flow.pickling import check_picklable
from tests.flow.random_flows import Partitioned, Splitter, flows, ignore

LOCK = "TypeError: cannot pickle '_thread.lock' object"
REMEDY = "make it in open(context), or leave it out of __getstate__"


class Locked:
    def __init__(self) -> None:
        self.fine = 1
        self.lock = threading.Lock()

    def process(self, item: object, out: object) -> None: ...

    def apply(self, item: object) -> None: ...


class Slotted:
    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def process(self, item: object, out: object) -> None: ...


class Holder:
    def __init__(self) -> None:
        self.parts: list[Any] = [1, {"inner": Locked()}]

    def process(self, item: object, out: object) -> None: ...


class Stubborn:
    def __reduce__(self) -> str | tuple[Any, ...]:
        raise RuntimeError("never")

    def process(self, item: object, out: object) -> None: ...


def closing_over_a_lock() -> Callable[[Any], Any]:
    lock = threading.Lock()
    return lambda item: (item, lock)


def with_a_default() -> Callable[[Any], Any]:
    def wait(item: Any, lock: Any = threading.Lock()) -> Any:  # noqa: B008
        return item, lock

    return wait


def with_a_keyword_default() -> Callable[[Any], Any]:
    def wait(item: Any, *, lock: Any = threading.Lock()) -> Any:  # noqa: B008
        return item, lock

    return wait


def class_with_a_lock() -> type:
    class Shared:
        lock = threading.Lock()

        def process(self, item: object, out: object) -> None: ...

    return Shared


def mapped(body: Any) -> Flow:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").map(body, name="a").sink(print)
    return flow


def hosted(body: Any) -> Flow:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").task(body, name="a").sink(print)
    return flow


def two(lock: Any, item: Any) -> Any:
    return lock, item


def two_named(item: Any, lock: Any) -> Any:
    return lock, item


@pytest.mark.parametrize(
    ("flow", "culprit"),
    [
        (mapped(closing_over_a_lock()), "its closure variable lock (a lock)"),
        (mapped(with_a_default()), "its default 0 (a lock)"),
        (mapped(with_a_keyword_default()), "its default lock (a lock)"),
        (mapped(functools.partial(two, threading.Lock())), "its argument 0 (a lock)"),
        (mapped(functools.partial(two_named, lock=threading.Lock())), "its argument lock (a lock)"),
        (mapped(Locked().apply), "its object (a Locked), attribute lock (a lock)"),
        (hosted(Locked()), "its attribute lock (a lock)"),
        (hosted(Slotted()), "its attribute lock (a lock)"),
        (
            hosted(Holder()),
            "its attribute parts (a list), element 1 (a dict), entry 'inner' (a Locked),"
            " attribute lock (a lock)",
        ),
        (hosted(class_with_a_lock()), "its class attribute lock (a lock)"),
        (hosted(class_with_a_lock()()), "its class (a type), class attribute lock (a lock)"),
    ],
)
def test_tasks_refused(flow: Flow, culprit: str) -> None:
    with pytest.raises(FlowError) as refused:
        check_picklable(flow.graph())
    assert str(refused.value) == (
        f'task "a" of flow "f" cannot be sent to workers, because {culprit} cannot be pickled'
        f" ({LOCK}); {REMEDY}"
    )


def test_an_object_that_refuses_as_a_whole() -> None:
    with pytest.raises(FlowError) as refused:
        check_picklable(hosted(Stubborn()).graph())
    assert str(refused.value) == (
        'task "a" of flow "f" cannot be sent to workers, because it cannot be pickled'
        f" (RuntimeError: never); {REMEDY}"
    )


def test_globals() -> None:
    scope: dict[str, Any] = {"lock": threading.Lock(), "__name__": "__main__"}
    exec("def wait(item): return lock", scope)
    with pytest.raises(FlowError, match=r"because its global lock \(a lock\) cannot be pickled"):
        check_picklable(mapped(scope["wait"]).graph())


def test_keys_sources_and_sinks() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").by_key(closing_over_a_lock()).sink(print)
    with pytest.raises(FlowError, match=r'^the key of stream "s->print" of flow "f" cannot be sent'):
        check_picklable(flow.graph())
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").sink(closing_over_a_lock(), name="k")
    with pytest.raises(FlowError, match=r'^sink "k" of flow "f" cannot be sent'):
        check_picklable(flow.graph())
    source = Partitioned(1)
    source.lock = threading.Lock()  # type: ignore[attr-defined]
    flow = Flow("f")
    flow.source(source, name="s").sink(ignore)
    with pytest.raises(FlowError, match=r'^source "s" of flow "f" .* its attribute lock'):
        check_picklable(flow.graph())


def test_a_part_that_contains_itself() -> None:
    looped = Locked()
    looped.fine = looped  # type: ignore[assignment]
    with pytest.raises(FlowError, match="cannot be pickled"):
        check_picklable(hosted(looped).graph())


def test_lambdas_classes_and_closures_travel() -> None:
    factor = 2
    flow = mapped(lambda item: factor * item)
    flow.output("a").by_key(lambda item: item).task(Splitter).sink([].append)
    check_picklable(flow.graph())


@given(flows(most_tasks=3))
def test_what_can_travel_is_not_refused(flow: Flow) -> None:
    check_picklable(flow.graph())
