"""Penstock's loggers: untouched on import, shown by commands while they run."""

import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from penstock.cli.logs import LogLevel, logs_shown
from penstock.cli.main import app

LOGGER = logging.getLogger("penstock.control")


def heard(level: LogLevel) -> list[str]:
    console = Console(file=io.StringIO(), width=40)
    with logs_shown(console, level):
        LOGGER.debug("a detail")
        LOGGER.info("news [bold]of %s[/]", "importance")
        LOGGER.warning("a constraint that cannot be kept, told in a line that is long")
    LOGGER.warning("too late")
    assert isinstance(console.file, io.StringIO)
    return [line.partition(" ")[2] for line in console.file.getvalue().splitlines()]


def test_what_is_at_least_as_important_is_shown_in_a_line_each() -> None:
    warning = "WARNING penstock.control: a constraint that cannot be kept, told in a line that is long"
    news = "INFO penstock.control: news [bold]of importance[/]"
    assert heard(LogLevel.ERROR) == []
    assert heard(LogLevel.WARNING) == [warning]
    assert heard(LogLevel.INFO) == [news, warning]
    assert heard(LogLevel.DEBUG) == ["DEBUG penstock.control: a detail", news, warning]


def test_the_logger_is_as_before_afterwards() -> None:
    logger = logging.getLogger("penstock")
    before = (logger.level, logger.propagate, list(logger.handlers))
    heard(LogLevel.DEBUG)
    with pytest.raises(KeyError), logs_shown(Console(file=io.StringIO()), LogLevel.INFO):
        raise KeyError
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_nothing_is_configured_on_import() -> None:
    code = (
        "import logging, penstock, penstock.cli.main, penstock.spark.run\n"
        "names = ['', *(name for name in logging.root.manager.loggerDict if name.startswith('penstock'))]\n"
        "loggers = [logging.getLogger(name or None) for name in names]\n"
        "assert len(loggers) > 2\n"
        "usual = (logging.NOTSET, logging.WARNING)\n"
        "print([one for one in loggers if one.handlers or one.level not in usual])"
    )
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_an_unknown_level_exits_with_2() -> None:
    refused = CliRunner().invoke(app, ["run", "primetest", "--log-level", "loud"])
    assert refused.exit_code == 2
    assert "'loud' is not one of" in " ".join(refused.stderr.replace("│", " ").split())
