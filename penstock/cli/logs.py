"""What Penstock's loggers say, on the screen of a command, above what is drawn there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

_STYLES = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}
_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogLevel(StrEnum):
    """From the most to the least."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevelOption = Annotated[
    LogLevel,
    typer.Option("--log-level", help="What is told of the loggers of Penstock; Spark's are apart."),
]


class _OnConsole(logging.Handler):
    """By the console that draws the table, or both would write over each other."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self.setFormatter(logging.Formatter(_FORM, "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        style = _STYLES.get(record.levelno)
        try:
            text = self.format(record)
            self._console.print(text, markup=False, highlight=False, soft_wrap=True, style=style)
        except Exception:  # noqa: BLE001 - as all handlers do
            self.handleError(record)


@contextmanager
def logs_shown(console: Console, level: LogLevel) -> Iterator[None]:
    """While a command runs; afterwards the logger is as it was."""
    logger, handler = logging.getLogger("penstock"), _OnConsole(console)
    before = logger.level, logger.propagate
    logger.setLevel(level.value.upper())
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
