"""What Spark itself says: errors only, unless somebody wants more.

Penstock's own words are Python's: the logger "penstock" and those below it, which nothing here configures.
"""

import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkContext

from penstock.flow.errors import FlowError

LEVEL: Final = "spark.log.level"
QUIET: Final = "ERROR"
LEVEL_VARIABLE: Final = "PENSTOCK_SPARK_LOG_LEVEL"
FILE_VARIABLE: Final = "LOG4J_CONFIGURATION_FILE"  # of Log4j 2
_LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_OURS = Path(__file__).parent / "log4j2.properties"


def wanted_level(environment: Mapping[str, str] = os.environ) -> str:
    """Spark's level, by the environment."""
    level = environment.get(LEVEL_VARIABLE, "").strip().upper() or QUIET
    if level not in _LEVELS:
        raise FlowError(
            f"{LEVEL_VARIABLE}={environment[LEVEL_VARIABLE]} is no level of Spark's log;"
            f" there are {', '.join(_LEVELS)}"
        )
    return level


@contextmanager
def quiet_start(environment: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Around the start of a session: Spark greets with several lines unless Log4j is told before.

    Whoever has a configuration of their own keeps it.
    """
    if FILE_VARIABLE in environment or _has_own_file(environment):
        yield
        return
    environment[FILE_VARIABLE] = str(_OURS)
    try:
        yield
    finally:
        del environment[FILE_VARIABLE]


@contextmanager
def silenced(context: SparkContext) -> Iterator[None]:
    """Around the end of a query: Spark has a lot to say when it is stopped inside a batch.

    Whoever asked for more than errors hears this as well.
    """
    if context.getConf().get(LEVEL, QUIET) != QUIET:
        yield
        return
    context.setLogLevel("OFF")
    try:
        yield
    finally:
        context.setLogLevel(QUIET)


def _has_own_file(environment: Mapping[str, str]) -> bool:
    """In the directory of Spark's settings, where Spark looks for it."""
    home = environment.get("SPARK_HOME")
    places = [environment.get("SPARK_CONF_DIR"), str(Path(home) / "conf") if home else None]
    return any(place and any(Path(place).glob("log4j2.*")) for place in places)
