"""Penstock: Python dataflows that keep their latency constraints on Apache Spark real-time mode."""

from typing import TYPE_CHECKING, Any

from penstock import state
from penstock.flow import Flow, FlowError, Out, Output, Record, elastic, retry, task
from penstock.flow.errors import JobFailed
from penstock.io import dedup_jsonl, jsonl, kafka, msgspec_codec, paced, replay, secret, to_kafka

if TYPE_CHECKING:
    from penstock.spark.dead_letters import replay_dead_letters
    from penstock.spark.drained import Drained
    from penstock.spark.job import Job
    from penstock.spark.run import run
    from penstock.spark.session import session

__all__ = [
    "Drained",
    "Flow",
    "FlowError",
    "Job",
    "JobFailed",
    "Out",
    "Output",
    "Record",
    "dedup_jsonl",
    "elastic",
    "jsonl",
    "kafka",
    "msgspec_codec",
    "paced",
    "replay",
    "replay_dead_letters",
    "retry",
    "run",
    "secret",
    "session",
    "state",
    "task",
    "to_kafka",
]

_LAZY = {
    "Drained": "penstock.spark.drained",
    "Job": "penstock.spark.job",
    "replay_dead_letters": "penstock.spark.dead_letters",
    "run": "penstock.spark.run",
    "session": "penstock.spark.session",
}


def __getattr__(name: str) -> Any:
    """Spark is imported when a flow is run, not when it is declared: workers never need it."""
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
