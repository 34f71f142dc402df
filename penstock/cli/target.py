"""From what a user types to a flow: `module:name`, or the name of an application."""

from collections.abc import Callable, Sequence

from penstock.apps.registry import APPS
from penstock.cli.flow_options import FlowOptionError, keywords
from penstock.flow import Flow, FlowError
from penstock.imported import imported


class TargetError(ValueError):
    """No flow is to be found under that name; the message says where it was looked for."""


def load_flow(target: str, options: Sequence[str] = ()) -> Flow:
    """The flow a module holds, or makes when its function is called with the options."""
    place = APPS.get(target, target)
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise TargetError(
            f"{target!r} is neither an application ({', '.join(APPS)}) nor of the form module:flow"
        )
    found = imported(module_name, name, TargetError)
    if isinstance(found, Flow) or not callable(found):
        if options:
            raise FlowOptionError(f"{target!r} is no function, so it takes no options")
        flow = found
    else:
        flow = _made(found, target, options)
    if not isinstance(flow, Flow):
        raise TargetError(f"{place!r} is a {type(flow).__name__}, not a Flow or a function that returns one")
    return flow


def _made(make: Callable[..., object], target: str, options: Sequence[str]) -> object:
    chosen = keywords(make, target, options)
    if target not in APPS:
        return make(**chosen)
    try:
        return make(**chosen)
    except (OSError, ValueError) as error:
        if isinstance(error, FlowError):
            raise
        raise TargetError(f"application {target!r}: {error}") from None
