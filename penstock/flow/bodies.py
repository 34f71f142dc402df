"""What may be the body of a task: functions for map, flat_map and filter, classes and objects for the rest.

Mistakes that would only show in a worker, far from their cause, are refused where the flow is declared.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from penstock.flow.errors import FlowError
from penstock.flow.graph import Form


class HasSplits(Protocol):
    """What placement needs to know of a source."""

    @property
    def splits(self) -> Sequence[str]:
        """The names of the parts the source is read in, each by a replica of its own."""


def check_function(body: object, form: Form, where: str) -> None:
    """A function of one item, of the right kind for `form`."""
    if _has_method(body, "process"):
        raise FlowError(f"{where}: {form} takes a function, but this has process(item, out); use .task(...)")
    if not callable(body):
        raise FlowError(f"{where}: {form} takes a function of one item, not {body!r}")
    _refuse_async(body, where)
    if form != "flat_map" and _is_generator(body):
        raise FlowError(f"{where}: the function yields, so {form} would get a generator; use .flat_map(...)")
    if not _accepts(body, 1):
        raise FlowError(f"{where}: the function must accept one argument, the item")


def check_object(body: object, *, timed: bool, where: str) -> None:
    """A class or an object with `process(item, out)`, and `timer(out)` exactly if it is `timed`."""
    if not _has_method(body, "process"):
        remedy = "use .map(...), .flat_map(...) or .filter(...)" if callable(body) else "add the method"
        raise FlowError(f"{where}: there is no method process(item, out); {remedy}")
    process = _method(body, "process")
    _refuse_async(process, where)
    if _is_generator(process):
        raise FlowError(f"{where}: process yields, but nothing would read it; call out(item) instead")
    if not _accepts(process, 2):
        raise FlowError(f"{where}: process must accept two arguments, process(item, out)")
    _check_constructible(body, where)
    if timed and not _has_method(body, "timer"):
        raise FlowError(f"{where}: every is given, but there is no method timer(out); add it or remove every")
    if not timed and _has_method(body, "timer"):
        raise FlowError(f'{where}: timer(out) would never be called; say how often, as in every="200 ms"')
    if timed and not _accepts(_method(body, "timer"), 1):
        raise FlowError(f"{where}: timer must accept one argument, timer(out)")


def check_sink(body: object, where: str) -> Form:
    """The form of a sink: an object or class with `write(item)`, or any callable of one item."""
    if _has_method(body, "write"):
        write = _method(body, "write")
        _refuse_async(write, where)
        if not _accepts(write, 1):
            raise FlowError(f"{where}: write must accept one argument, write(item)")
        _check_constructible(body, where)
        return "sink_object"
    if _has_method(body, "process"):
        raise FlowError(f"{where}: a sink has write(item), but this has process(item, out); use .task(...)")
    if isinstance(body, type) or not callable(body):
        raise FlowError(
            f"{where}: a sink is a function of one item, or a class or object with write(item), not {body!r}"
        )
    _refuse_async(body, where)
    if _is_generator(body):
        raise FlowError(f"{where}: the function yields, but nothing would read it; write the item instead")
    if not _accepts(body, 1):
        raise FlowError(f"{where}: the function must accept one argument, the item")
    return "sink_function"


def _has_method(body: object, name: str) -> bool:
    return callable(getattr(body, name, None))


def _method(body: object, name: str) -> Callable[..., Any]:
    """The method as it is called on an object: without `self`, also where a class is given."""
    found: Callable[..., Any] = getattr(body, name)
    if isinstance(body, type) and inspect.isfunction(inspect.getattr_static(body, name)):
        return found.__get__(object())  # type: ignore[no-any-return]
    return found


def _accepts(function: Callable[..., Any], arguments: int) -> bool:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return True  # some builtins do not tell; a worker will
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True


def _check_constructible(body: object, where: str) -> None:
    if isinstance(body, type) and not _accepts(body, 0):
        raise FlowError(f"{where}: class {body.__name__} needs arguments; give an object of it instead")


def _is_generator(function: Callable[..., Any]) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(_call(function))


def _refuse_async(function: Callable[..., Any], where: str) -> None:
    for candidate in (function, _call(function)):
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise FlowError(f"{where}: async functions are not awaited; make it a plain function")


def _call(function: Callable[..., Any]) -> object:
    """What runs when a callable object is called (a class is called to make an object, not to run)."""
    return None if isinstance(function, type) else getattr(function, "__call__", None)  # noqa: B004
