"""Objects of users' modules by their names, as in `module:name`."""

import importlib
import sys
from pathlib import Path


def imported(module_name: str, name: str, error: type[ValueError], before: str = "") -> object:
    """What a module, also one of the directory we are in, has under that name; `error` says what is missing.

    An error of the module's own, such as a missing module that it imports, is raised as it is.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module_name}.".startswith(f"{missing.name}."):
            raise
        raise error(f"{before}no module {module_name!r} to be found from {here}") from None
    if not hasattr(module, name):
        raise error(f"{before}module {module_name!r} has no {name!r}")
    found: object = getattr(module, name)
    return found
