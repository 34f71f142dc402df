"""`task`: settings written beside a function or a class, which stays exactly what it was."""

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar, Unpack, overload

from penstock.flow.errors import FlowError
from penstock.flow.options import TaskOptions, check_known

_ATTACHED: Final = "__penstock_task__"

Body = TypeVar("Body", bound=Callable[..., Any])


@overload
def task(body: Body, /) -> Body: ...


@overload
def task(**options: Unpack[TaskOptions]) -> Callable[[Body], Body]: ...


def task(body: Body | None = None, /, **options: Unpack[TaskOptions]) -> Body | Callable[[Body], Body]:
    """Attach settings to a function or class; keyword arguments where it joins a flow override them.

    >>> @task(parallelism=4, on_error="skip")
    ... def double(item: int) -> int:
    ...     return 2 * item
    >>> double(21)
    42
    """
    check_known(options, "@task")

    def attach(decorated: Body) -> Body:
        try:
            setattr(decorated, _ATTACHED, options)
        except (AttributeError, TypeError) as error:
            raise FlowError(
                f"@task: {decorated!r} takes no attributes; give its settings where it joins a flow"
            ) from error
        return decorated

    return attach if body is None else attach(body)


def attached(body: object) -> TaskOptions:
    """The settings attached to a function, or to the class of an object; not those of a base class."""
    while isinstance(body, functools.partial):
        body = body.func
    for holder in (body, type(body)):
        options: TaskOptions | None = getattr(holder, "__dict__", {}).get(_ATTACHED)
        if options is not None:
            return options
    return TaskOptions()
