"""Spark's configuration for a session: our settings and the user's put together, conflicts refused."""

from collections.abc import Mapping
from pathlib import Path

from penstock.flow.errors import FlowError
from penstock.flow.spark_conf import SETTINGS, Setting

JAR = Path(__file__).parent / "jars" / "penstock-bridge.jar"


def merged(user: Mapping[str, str]) -> dict[str, str]:
    """The settings for a session: the user's over ours; a conflict with a fixed one is refused."""
    together = {setting.key: setting.value for setting in SETTINGS}
    together |= {key: str(value) for key, value in user.items()}
    for setting in SETTINGS:
        wanted = together[setting.key]
        if not setting.fixed or _agrees(setting, wanted):
            continue
        if not setting.listed:
            raise FlowError(
                f"setting {setting.key}={wanted} cannot be used with Penstock, which needs {setting.value}"
                f" ({setting.why}); remove it"
            )
        together[setting.key] = ",".join([*_classes(wanted), setting.value])
    return together


def missing_from(present: Mapping[str, str]) -> list[Setting]:
    """The fixed settings that a session started by somebody else lacks."""
    return [s for s in SETTINGS if s.fixed and not _agrees(s, present.get(s.key, ""))]


def _agrees(setting: Setting, value: str) -> bool:
    if setting.listed:
        return setting.value in _classes(value)
    return value.strip().lower() == setting.value


def _classes(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]
