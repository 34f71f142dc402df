"""Whether the tasks of a flow can travel to workers, checked before anything starts."""

import functools
import inspect
from collections.abc import Iterator
from typing import Any, Final

import cloudpickle

from penstock.flow.errors import FlowError
from penstock.flow.graph import ITEM_ID, Graph

# Deep enough for an attribute of an attribute in a closure; deeper, the path would not help any more.
_DEEPEST: Final = 6


def check_picklable(graph: Graph) -> None:
    """Refuse the first task, key or codec that cannot be pickled, naming the part of it that is to blame."""
    for task in graph.tasks:
        _check(task.body, f'{task.kind} "{task.name}" of flow "{graph.name}"')
    for stream in graph.streams:
        if stream.key is not None and stream.key is not ITEM_ID:
            _check(stream.key, f'the key of stream "{stream.name}" of flow "{graph.name}"')
        if not isinstance(stream.codec, str):
            _check(stream.codec, f'the codec of stream "{stream.name}" of flow "{graph.name}"')


def _check(body: object, what: str) -> None:
    error = _failure(body)
    if error is None:
        return
    path = _blamed(body)
    culprit = "it" if not path else f"its {', '.join(path)}"
    raise FlowError(
        f"{what} cannot be sent to workers, because {culprit} cannot be pickled"
        f" ({type(error).__name__}: {error}); make it in open(context), or leave it out of __getstate__"
    ) from error


def _failure(value: object) -> Exception | None:
    try:
        cloudpickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - any exception of any user's __reduce__ means the same
        return error
    return None


def _blamed(value: object) -> list[str]:
    """The way to the innermost part that cannot be pickled, outermost first."""
    path: list[str] = []
    seen: set[int] = set()
    while len(path) < _DEEPEST and id(value) not in seen:
        seen.add(id(value))
        for label, part in _parts(value):
            if _failure(part) is not None:
                path.append(f"{label} (a {type(part).__name__})")
                value = part
                break
        else:
            break
    return path


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    """What pickling a value by value also has to pickle, with a label for each part."""
    if isinstance(value, functools.partial):
        yield "function", value.func
        yield from ((f"argument {index}", part) for index, part in enumerate(value.args))
        yield from ((f"argument {name}", part) for name, part in value.keywords.items())
    elif inspect.ismethod(value):
        yield "object", value.__self__
    elif inspect.isfunction(value):
        yield from _parts_of_function(value)
    elif isinstance(value, dict):
        yield from ((f"entry {key!r}", part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"element {index}", part) for index, part in enumerate(value))
    elif isinstance(value, type):
        yield from ((f"class attribute {name}", part) for name, part in _own_attributes(value))
    else:
        yield from ((f"attribute {name}", part) for name, part in _attributes(value))
        yield "class", type(value)


def _parts_of_function(function: Any) -> Iterator[tuple[str, object]]:
    variables = inspect.getclosurevars(function)
    yield from ((f"closure variable {name}", part) for name, part in variables.nonlocals.items())
    yield from ((f"global {name}", part) for name, part in variables.globals.items())
    yield from ((f"default {index}", part) for index, part in enumerate(function.__defaults__ or ()))
    yield from ((f"default {name}", part) for name, part in (function.__kwdefaults__ or {}).items())


def _own_attributes(cls: type) -> Iterator[tuple[str, object]]:
    for name, part in vars(cls).items():
        if name not in ("__dict__", "__weakref__"):
            yield name, part.__func__ if isinstance(part, staticmethod | classmethod) else part


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    yield from getattr(value, "__dict__", {}).items()
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield name, getattr(value, name)
