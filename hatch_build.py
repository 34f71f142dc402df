"""Build hook: compiles the Java bridge so that its jar is part of every wheel and editable installation."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def bridge_builder(root: Path) -> ModuleType:
    """Load the builder from its file: importing the package would need all its dependencies."""
    path = root / "penstock" / "spark" / "build_bridge.py"
    spec = importlib.util.spec_from_file_location("penstock_build_bridge", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"cannot load the bridge builder {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class BridgeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles `java/` against the jars of the installed pyspark before a wheel is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if self.target_name != "wheel":
            return
        bridge_builder(Path(self.root)).build_all()
        build_data["pure_python"] = True
