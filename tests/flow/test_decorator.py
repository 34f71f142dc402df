"""The decorator leaves what it decorates alone; its settings give way to those of the call."""

from typing import TYPE_CHECKING, Any

import pytest

from penstock.flow import Flow, FlowError, Output, elastic, task
from penstock.flow.graph import Task
from tests.flow.random_flows import Partitioned

if TYPE_CHECKING:
    from collections.abc import Callable


@task(parallelism=4, on_error="skip", latency_kind="read_write", name="twice")
def double(item: int) -> int:
    return 2 * item


@task
def plain(item: int) -> int:
    return item


@task(every="200 ms", outputs=("hits", "late"))
class Timed:
    every = "1 s"
    latency_kind = "read_write"

    def process(self, item: object, out: object) -> None: ...

    def timer(self, out: object) -> None: ...


class Heir(Timed):
    pass


def declared(body: object, **options: object) -> Task:
    flow = Flow("f")
    source = flow.source(Partitioned(1))
    add: Callable[..., Output[Any]] = source.task if hasattr(body, "process") else source.map
    made = add(body, **options)
    made.sink(print)
    return flow.graph().task(made.name)


def test_the_function_stays_callable() -> None:
    assert double(21) == 42
    assert double.__name__ == "double"
    assert plain(3) == 3


def test_settings_are_taken_over() -> None:
    made = declared(double)
    assert (made.name, made.parallelism.max, made.on_error, made.latency_kind) == (
        "twice",
        4,
        "skip",
        "read_write",
    )
    assert made.defaults == ()


def test_the_call_overrides_the_decorator() -> None:
    made = declared(double, name="again", parallelism=elastic(1, 3), on_error="dead_letter")
    assert (made.name, made.parallelism, made.on_error) == ("again", elastic(1, 3), "dead_letter")
    assert made.latency_kind == "read_write"


def test_none_at_the_call_says_nothing() -> None:
    assert declared(double, parallelism=None).parallelism.max == 4


@pytest.mark.parametrize("body", [Timed, Timed()])
def test_the_decorator_overrides_class_attributes(body: object) -> None:
    made = declared(body)
    assert (made.every_ms, made.outputs, made.latency_kind) == (200.0, ("hits", "late"), "read_write")
    assert declared(body, every="50 ms").every_ms == 50.0


def test_a_subclass_has_the_attributes_but_not_the_decorator_of_its_base() -> None:
    made = declared(Heir)
    assert (made.every_ms, made.outputs, made.latency_kind) == (1000.0, ("out",), "read_write")


def test_bare_decorator_attaches_nothing() -> None:
    assert declared(plain).defaults == ("name", "parallelism", "on_error", "latency_kind")


def test_bound_methods_carry_the_settings_of_their_function() -> None:
    class Scale:
        @task(parallelism=3)
        def scale(self, item: int) -> int:
            return item

    assert declared(Scale().scale).parallelism.max == 3


def test_unknown_setting() -> None:
    with pytest.raises(FlowError) as refused:
        task(paralellism=4)  # type: ignore[call-overload]
    assert str(refused.value) == (
        '@task: unknown setting "paralellism"; the settings are'
        " name, parallelism, on_error, memory, timeout, concurrency, ordered, retries, chain,"
        " latency_kind, every, outputs, size, was"
    )


def test_builtins_cannot_be_decorated() -> None:
    with pytest.raises(FlowError) as refused:
        task(parallelism=2)(len)
    assert str(refused.value) == (
        "@task: <built-in function len> takes no attributes; give its settings where it joins a flow"
    )
