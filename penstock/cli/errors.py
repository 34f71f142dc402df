"""Errors of the user become a line on standard error and exit code 2, not a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from penstock.bench.checkout import CheckoutError
from penstock.bench.registry import UnknownBenchError
from penstock.cli.flow_options import FlowOptionError
from penstock.cli.target import TargetError
from penstock.control.recording import RecordingError
from penstock.durations import DurationError
from penstock.evaluation.registry import UnknownApplicationError
from penstock.extras import MissingExtraError
from penstock.faults.row import UnknownRowError
from penstock.flow import FlowError
from penstock.policy.parameters import SettingError
from penstock.policy.registry import UnknownPolicyError
from penstock.report.errors import PictureError

BAD_INPUT = 2


@contextmanager
def user_errors(console: Console) -> Iterator[None]:
    """Around whatever uses what the user typed or declared."""
    try:
        yield
    except (
        TargetError,
        CheckoutError,
        FlowOptionError,
        FlowError,
        DurationError,
        MissingExtraError,
        PictureError,
        RecordingError,
        SettingError,
        UnknownApplicationError,
        UnknownBenchError,
        UnknownPolicyError,
        UnknownRowError,
    ) as error:
        console.print(f"penstock: {error}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(BAD_INPUT) from None
