"""Spark's configuration for a session: our settings and the user's put together, conflicts refused."""

import re
from collections.abc import Mapping
from pathlib import Path

from penstock.flow.errors import FlowError
from penstock.flow.spark_conf import CONF, SEALED, SHUFFLE, SPARKS, ConfEntry

SPARK_VERSION = "4.3.0"
JAR = Path(__file__).parent / "jars" / "penstock-bridge.jar"


def merged(user: Mapping[str, str]) -> dict[str, str]:
    """The settings for a session: the user's over ours; a conflict with a fixed one is refused."""
    together = {entry.key: entry.value for entry in CONF}
    together |= {key: str(value) for key, value in user.items()}
    for entry in CONF:
        wanted = together[entry.key]
        if not entry.fixed or _agrees(entry, wanted):
            continue
        if not entry.listed:
            raise FlowError(
                f"setting {entry.key}={wanted} cannot be used with Penstock, which needs {entry.value}"
                f" ({entry.why}); remove it"
            )
        together[entry.key] = ",".join([*_classes(wanted), entry.value])
    return together


def sealed(conf: Mapping[str, str], master: str) -> dict[str, str]:
    """Between executors Spark's own shuffle asks nobody who they are: there its rows carry seals."""
    is_open = conf[SHUFFLE] == SPARKS and not is_one_process(master)
    return {**conf, SHUFFLE: SEALED if is_open else conf[SHUFFLE]}


def is_one_process(master: str) -> bool:
    """Whether executors are none but the driver itself."""
    return re.match(r"local(\[|$)", master) is not None


def missing_from(present: Mapping[str, str]) -> list[ConfEntry]:
    """The fixed settings that a session started by somebody else lacks."""
    return [s for s in CONF if s.fixed and not _agrees(s, present.get(s.key, ""))]


def _agrees(entry: ConfEntry, value: str) -> bool:
    if entry.listed:
        return entry.value in _classes(value)
    return value.strip().lower() == entry.value


def _classes(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]
