"""What a flow and its controller tell by Python's loggers, caught while a trial runs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Heard(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


@contextmanager
def alarms() -> Iterator[list[str]]:
    """The warnings of Penstock's loggers; they are not shown meanwhile."""
    lines: list[str] = []
    logger, handler = logging.getLogger("penstock"), _Heard(lines)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
