"""From what a user types to a flow: `module:name`, or the name of an application."""

import importlib
import sys
from pathlib import Path

from penstock.apps.registry import APPS
from penstock.flow import Flow


class TargetError(ValueError):
    """No flow is to be found under that name; the message says where it was looked for."""


def load_flow(target: str) -> Flow:
    """The flow a module holds, or makes when its function without arguments is called."""
    place = APPS.get(target, target)
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise TargetError(
            f"{target!r} is neither an application ({', '.join(APPS)}) nor of the form module:flow"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise TargetError(f"no module {module_name!r} to be found from {here}") from None
        raise
    if not hasattr(module, name):
        raise TargetError(f"module {module_name!r} has no {name!r}")
    found = getattr(module, name)
    flow = found if isinstance(found, Flow) or not callable(found) else found()
    if not isinstance(flow, Flow):
        raise TargetError(f"{place!r} is a {type(flow).__name__}, not a Flow or a function that returns one")
    return flow
