"""What goes wrong becomes a red line on standard error and an exit code, not a traceback.

2 says that what was typed or declared is wrong, 1 that it was right and failed.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from penstock.arena.entrants import EntrantError
from penstock.bench.checkout import CheckoutError
from penstock.bench.registry import UnknownBenchError
from penstock.cli.flow_options import FlowOptionError
from penstock.cli.simulate_options import BesideError
from penstock.cli.target import TargetError
from penstock.control.recording import RecordingError
from penstock.durations import DurationError
from penstock.evaluation.registry import UnknownApplicationError
from penstock.extras import MissingExtraError
from penstock.faults.row import UnknownRowError
from penstock.flow import FlowError
from penstock.flow.errors import JobFailed
from penstock.operate.client import NoAnswerError, NoSuchFlowError
from penstock.operate.place import PlaceError
from penstock.operate.protocol import ProtocolError
from penstock.policy.parameters import SettingError
from penstock.policy.registry import UnknownPolicyError
from penstock.report.errors import PictureError
from penstock.sim.catalogue import UnknownWorkloadError
from penstock.sim.load import LoadError
from penstock.sim.model import ModelError
from penstock.testing.kafka_broker import BrokerError
from penstock.testing.kafka_jars import JarsError

FAILED = 1
BAD_INPUT = 2


@contextmanager
def user_errors(console: Console) -> Iterator[None]:
    """Around whatever uses what the user typed or declared, and may fail."""
    try:
        yield
    except (
        TargetError,
        BesideError,
        CheckoutError,
        FlowOptionError,
        FlowError,
        DurationError,
        EntrantError,
        LoadError,
        MissingExtraError,
        ModelError,
        NoSuchFlowError,
        PictureError,
        RecordingError,
        SettingError,
        UnknownApplicationError,
        UnknownBenchError,
        UnknownPolicyError,
        UnknownRowError,
        UnknownWorkloadError,
    ) as error:
        tell_error(console, str(error))
        raise typer.Exit(BAD_INPUT) from None
    except (BrokerError, JarsError, JobFailed, NoAnswerError, PlaceError, ProtocolError) as error:
        tell_error(console, str(error))
        raise typer.Exit(FAILED) from None
    except OSError as error:
        if error.filename is None:
            raise
        tell_error(console, f"{error.filename}: {error.strerror}")
        raise typer.Exit(BAD_INPUT) from None


def tell_error(console: Console, what: str) -> None:
    """As all commands do."""
    console.print(f"penstock: {what}", markup=False, highlight=False, style="red", soft_wrap=True)
