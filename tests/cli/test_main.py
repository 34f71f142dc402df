"""The commands, without Spark where possible."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.bench.harness import Check, Effort, Result
from penstock.cli import bench as bench_command
from penstock.cli.main import app

runner = CliRunner()


def test_help_lists_the_commands() -> None:
    shown = runner.invoke(app, ["--help"]).output
    for command in ("run", "replay-dead-letters", "explain", "demo", "bench", "decide", "simulate"):
        assert command in shown


def test_explain_needs_no_spark() -> None:
    result = runner.invoke(app, ["explain", "primetest"])
    assert result.exit_code == 0
    assert "slots needed" in result.output
    assert "spark.speculation = false" in result.output


@pytest.mark.parametrize("command", ["run", "explain"])
def test_an_unknown_flow_exits_with_2_and_says_so(command: str) -> None:
    result = runner.invoke(app, [command, "nonsense"])
    assert result.exit_code == 2
    assert "'nonsense' is neither an application (classifier, livestream, " in result.stderr
    assert "nor of the form module:flow" in result.stderr


def test_replaying_without_letters_exits_with_2_and_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["replay-dead-letters", "primetest"])
    assert result.exit_code == 2
    assert f"no dead letters: {tmp_path}/dead_letters/primetest is not there" in result.stderr
    result = runner.invoke(app, ["replay-dead-letters", "primetest", "--task", "nobody"])
    assert result.exit_code == 2
    assert 'flow "primetest" has no task "nobody"; its tasks are ' in result.stderr


def test_an_unknown_bench_exits_with_2() -> None:
    result = runner.invoke(app, ["bench", "speed"])
    assert result.exit_code == 2
    assert "no bench is called 'speed'" in result.stderr


@pytest.mark.parametrize(("value", "code"), [(1.0, 0), (3.0, 1)])
def test_bench_prints_json_and_fails_with_its_checks(
    monkeypatch: pytest.MonkeyPatch, value: float, code: int
) -> None:
    seen: list[Effort] = []

    def fake(effort: Effort) -> Result:
        seen.append(effort)
        return Result("fake", {}, [Check("c", value, "<=", 2.0)])

    monkeypatch.setattr(bench_command, "find", lambda name, only: fake)
    result = runner.invoke(app, ["bench", "latency", "--json", "--quick"])
    assert result.exit_code == code
    assert json.loads(result.stdout)["ok"] is (code == 0)
    assert seen == [Effort.QUICK]


@pytest.mark.spark
def test_run_runs_a_flow_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "short_flow.py").write_text(
        "import penstock\n"
        'flow = penstock.Flow("short")\n'
        "source = penstock.paced(lambda partition, index, seed: index, 1000, count=500)\n"
        f'flow.source(source, name="s").sink(penstock.jsonl({str(tmp_path / "out")!r}), name="out")\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = runner.invoke(app, ["run", "short_flow:flow"])
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(range(500))
