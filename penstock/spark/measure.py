"""What a worker counts and times, and the report it makes of it."""

import os
from typing import Any

import msgspec

from penstock.spark.failures import Failures
from penstock.spark.outbox import Outbox
from penstock.stats.sketch import Sketch


class Measurements:
    """Totals since the worker process began; the driver keeps the latest of each process."""

    def __init__(self, task: str, replica: int, outbox: Outbox, failures: Failures) -> None:
        self.items_in = 0
        self.latency_ms = Sketch()
        self._task = task
        self._replica = replica
        self._outbox = outbox
        self._failures = failures

    def report(self, **more: Any) -> bytes:
        """JSON for the driver."""
        return msgspec.json.encode(
            {
                "worker": {
                    "task": self._task,
                    "replica": self._replica,
                    "pid": os.getpid(),
                    "items_in": self.items_in,
                    "items_out": self._outbox.shipped_items,
                    "envelopes_out": self._outbox.shipped_envelopes,
                    "skipped": self._failures.skipped,
                    "dead_lettered": self._failures.dead_lettered,
                    "latency_ms": self.latency_ms.to_json(),
                },
                **more,
            }
        )
