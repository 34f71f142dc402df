"""Quick rows of the fault table, on the Spark of the tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.faults import run
from penstock.faults.row import Where
from penstock.faults.sessions import HereStage

pytestmark = pytest.mark.spark

QUICK = (
    "kill-task-worker",
    "kill-zygote",
    "hangs",
    "raises-fail",
    "oversized-result",
    "flush-raises-at-commit",
    "torn-checkpoint",
    "disk-full",
    "state-disk-full",
    "sources-reordered",
    "stop-under-load",
    "second-flow",
)
IN_TIME = ("bound holds again", "items due after the fault")
"""What a busy machine may miss; the command itself holds it against bars."""


def test_quick_rows(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def here(where: Where) -> Iterator[HereStage]:
        yield HereStage()

    monkeypatch.setattr(run, "stage", here)
    chosen = [argument for name in QUICK for argument in ("--only", name)]
    result = CliRunner().invoke(app, ["faults", *chosen, "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    missed = [(row["bench"], check["name"]) for row in rows for check in row["checks"] if not check["ok"]]
    assert [(row, check) for row, check in missed if not check.startswith(IN_TIME)] == [], result.stdout
    assert len(rows) == len(QUICK)
    assert result.exit_code == (1 if missed else 0), result.output
