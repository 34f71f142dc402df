"""What may be the body of a task: functions for maps and filters, classes and objects for the rest.

Mistakes that would only show in a worker, far from their cause, are refused where the flow is declared.
"""

import inspect
from collections.abc import Callable
from typing import Any

from penstock.flow.errors import FlowError
from penstock.flow.graph import Form


def check_function(body: object, form: Form, where: str) -> None:
    """A function of one item, or of a list of them, of the right kind for `form`."""
    batched = form in ("map_batches", "flat_map_batches")
    taken = "a list of items" if batched else "one item"
    if _has_method(body, "process"):
        raise FlowError(f"{where}: {form} takes a function, but this has process(item, out); use .task(...)")
    if not callable(body):
        raise FlowError(f"{where}: {form} takes a function of {taken}, not {body!r}")
    if batched:
        _refuse_async(body, where)
    if form != "flat_map" and _is_generator(body):
        remedy = "return a list" if batched else "use .flat_map(...)"
        raise FlowError(f"{where}: the function yields, so {form} would get a generator; {remedy}")
    if not _accepts(body, 1):
        argument = "the list of items" if batched else "the item"
        raise FlowError(f"{where}: the function must accept one argument, {argument}")


def check_object(body: object, *, timed: bool, where: str) -> None:
    """A class or an object with `process(item, out)`, and `timer(out)` exactly if it is `timed`."""
    if not _has_method(body, "process"):
        remedy = "use .map(...), .flat_map(...) or .filter(...)" if callable(body) else "add the method"
        raise FlowError(f"{where}: there is no method process(item, out); {remedy}")
    process = _method(body, "process")
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
    _check_hooks(body, "process", where)


def check_sink(body: object, where: str) -> Form:
    """The form of a sink: an object or class with `write(item)` or `write_many(items)`, or a function.

    Of an object that has both only `write_many` is called.
    """
    _check_transaction(body, where)
    if _has_method(body, "write_many"):
        _refuse_async(_method(body, "write_many"), where)
        _check_writer(body, "write_many", "items", where)
        return "sink_batches"
    if _has_method(body, "write"):
        _check_writer(body, "write", "item", where)
        _check_hooks(body, "write", where)
        return "sink_object"
    if _has_method(body, "process"):
        raise FlowError(f"{where}: a sink has write(item), but this has process(item, out); use .task(...)")
    if isinstance(body, type) or not callable(body):
        raise FlowError(
            f"{where}: a sink is a function of one item, or a class or object with write(item) or"
            f" write_many(items), not {body!r}"
        )
    if _is_generator(body):
        raise FlowError(f"{where}: the function yields, but nothing would read it; write the item instead")
    if not _accepts(body, 1):
        raise FlowError(f"{where}: the function must accept one argument, the item")
    return "sink_function"


def _check_writer(body: object, name: str, argument: str, where: str) -> None:
    write = _method(body, name)
    if _is_generator(write):
        raise FlowError(f"{where}: {name} yields, but nothing would read it; write the {argument} instead")
    if not _accepts(write, 1):
        raise FlowError(f"{where}: {name} must accept one argument, {name}({argument})")
    _check_constructible(body, where)


def _check_transaction(body: object, where: str) -> None:
    """`prepare(epoch)` and `commit(description)` of a sink that has both."""
    arguments = {"prepare": "epoch", "commit": "description"}
    if not all(_has_method(body, name) for name in arguments):
        return
    for name, argument in arguments.items():
        if _is_async(_method(body, name)):
            raise FlowError(f"{where}: {name} is not awaited; make it a plain method")
        if not _accepts(_method(body, name), 1):
            raise FlowError(f"{where}: {name} must accept one argument, {name}({argument})")


def is_async(body: object, form: Form) -> bool:
    """Whether a body that was accepted is one that must be awaited."""
    methods = {"object": "process", "sink_object": "write"}
    return _is_async(_method(body, methods[form]) if form in methods else body)


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
    return any(
        inspect.isgeneratorfunction(candidate) or inspect.isasyncgenfunction(candidate)
        for candidate in (function, _call(function))
    )


def _refuse_async(function: object, where: str) -> None:
    """Of a task that takes lists."""
    if _is_async(function):
        raise FlowError(f"{where}: a function of lists is not awaited; make it a plain function")


def _is_async(function: object) -> bool:
    return any(
        inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate)
        for candidate in (function, _call(function))
    )


def _check_hooks(body: object, method: str, where: str) -> None:
    """What is called beside the items: awaited if the items are, but for a timer."""
    if _has_method(body, "timer") and _is_async(_method(body, "timer")):
        raise FlowError(f"{where}: timer is not awaited; make it a plain method")
    if _is_async(_method(body, method)):
        return
    for hook in ("open", "flush", "close"):
        if _has_method(body, hook) and _is_async(_method(body, hook)):
            raise FlowError(f"{where}: {hook} is async and {method} is not; make both async, or none")


def _call(function: object) -> object:
    """What runs when a callable object is called (a class is called to make an object, not to run)."""
    return None if isinstance(function, type) else getattr(function, "__call__", None)  # noqa: B004
