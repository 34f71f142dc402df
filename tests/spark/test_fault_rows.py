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
    "sources-reordered",
    "stop-under-load",
    "second-flow",
)


def test_quick_rows(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def here(where: Where) -> Iterator[HereStage]:
        yield HereStage()

    monkeypatch.setattr(run, "stage", here)
    chosen = [argument for name in QUICK for argument in ("--only", name)]
    result = CliRunner().invoke(app, ["faults", *chosen, "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["bench"] for row in rows if not row["ok"]] == [], result.stdout
    assert len(rows) == len(QUICK)
    assert result.exit_code == 0, result.output
