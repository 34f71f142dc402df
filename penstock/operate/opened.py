"""Opening a running flow to commands; what goes wrong there is told once and never hurts the flow."""

import logging
import os
import time
from collections.abc import Callable

from penstock.control.recording_header import installed_versions
from penstock.operate.commands import Commands
from penstock.operate.place import places
from penstock.operate.ports import Operated
from penstock.operate.protocol import Greeting
from penstock.operate.server import Server

_log = logging.getLogger("penstock.operate")


def accept_commands(job: Operated, run: str) -> Callable[[], None]:
    """Let `penstock ps`, `status`, `set` and `stop` find the flow; how to end that."""
    flow = job.layout.graph.name
    greeting = Greeting(
        penstock=installed_versions().get("penstock", "?"),
        flow=flow,
        run=run,
        pid=os.getpid(),
        started_at_s=time.time(),
    )
    try:
        return Server(greeting, Commands(job).answer, places()[0]).close
    except OSError as problem:
        why = problem.strerror or str(problem)
        _log.warning("flow %s: `penstock ps`, `status`, `set` and `stop` do not see it: %s", flow, why)
        return lambda: None
