"""`--option key=value`: what a user may choose when a flow is made, by the signature of what makes it."""

import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import typer

from penstock.cli.completion import applications

Target = Annotated[
    str,
    typer.Argument(
        metavar="FLOW", help="module:flow, or the name of an application.", autocompletion=applications
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="NAME=VALUE", help="An option of the function that makes the flow."
    ),
]


class FlowOptionError(ValueError):
    """An option does not exist or has a value that will not do; the message names both."""


def keywords(make: Callable[..., Any], target: str, options: Sequence[str]) -> dict[str, Any]:
    """The options as keyword arguments of `make`, converted to the types it declares."""
    parameters = inspect.signature(make).parameters
    types = typing.get_type_hints(make)
    found: dict[str, Any] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals:
            raise FlowOptionError(f"option {option!r} of {target!r}: write it as name=value")
        if name not in parameters:
            known = ", ".join(_shown(parameter) for parameter in parameters.values()) or "no options"
            raise FlowOptionError(f"{target!r} has no option {name!r}; it has {known}")
        try:
            found[name] = msgspec.convert(value, types.get(name, str), strict=False)
        except msgspec.ValidationError as error:
            raise FlowOptionError(f"option {name} of {target!r}: {value!r} will not do: {error}") from None
    return found


def _shown(parameter: inspect.Parameter) -> str:
    """`name=default`, or only the name when it must be given."""
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    return f"{parameter.name}={'' if parameter.default is None else parameter.default}"
