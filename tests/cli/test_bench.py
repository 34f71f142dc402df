"""`penstock bench --against`, with checkouts that are played by the test."""

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.bench.checkout import Checkout, CheckoutError, Ran, Report
from penstock.cli import bench_against
from penstock.cli.main import app

runner = CliRunner()


class Quiet:
    """A machine that is never disturbed."""

    def slower(self) -> float:
        return 0.0


def play(
    monkeypatch: pytest.MonkeyPatch, this: Path, against: Path, cpu_us: float, asked: list[tuple[str, str]]
) -> None:
    """The other checkout takes 100 us per item, this one as given."""

    def run(checkout: Checkout, bench: str) -> Ran:
        asked.append((checkout.root.name, bench))
        cost = cpu_us if checkout.root == this else 100.0
        return Ran(
            Report(
                {
                    "at_once_cpu_us_per_item": cost,
                    "after_100_ms_cpu_us_per_item": 5.0,
                    "turns_up_ms": [4.0],
                    "turns_down_ms": [1.0],
                },
                [],
            )
        )

    monkeypatch.setattr(Checkout, "own", classmethod(lambda cls: cls(this)))
    monkeypatch.setattr(Checkout, "at", classmethod(lambda cls, path: cls(against)))
    monkeypatch.setattr(Checkout, "prepare", lambda checkout: asked.append((checkout.root.name, "prepare")))
    playing(monkeypatch, run)
    monkeypatch.setattr(bench_against, "Reference", Quiet)


def playing(monkeypatch: pytest.MonkeyPatch, run: Callable[[Checkout, str], Ran]) -> None:
    """Let turns be played by a function."""
    monkeypatch.setattr(Checkout, "contestant", lambda checkout: nullcontext(partial(run, checkout)))


@pytest.mark.parametrize(("cpu_us", "code"), [(104.0, 0), (106.0, 1)])
def test_both_take_turns_and_a_missed_bar_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, cpu_us: float, code: int
) -> None:
    asked: list[tuple[str, str]] = []
    play(monkeypatch, Path("/a/new"), Path("/a/old"), cpu_us, asked)
    result = runner.invoke(app, ["bench", "cpu", "--against", "/a/old", "--turns", "2", "--json"])
    assert result.exit_code == code, result.output
    prepared = [("new", "prepare"), ("old", "prepare")]
    assert asked == prepared + [(name, "cpu") for name in ("new", "old", "new", "old", "old", "new")]
    said = json.loads(result.stdout)
    assert said["bench"] == "cpu against"
    assert said["ok"] is (code == 0)
    assert said["figures"]["against"] == "/a/old"
    assert said["figures"]["at_once_cpu_us_per_item"]["turns_this"] == [cpu_us, cpu_us]
    assert "bench cpu: turn 1 of 4, this; about 3 min left" in result.stderr
    assert "at_once_cpu_us_per_item 100, after_100_ms_cpu_us_per_item 5" in result.stderr


def test_five_turns_of_each_and_a_table_if_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    play(monkeypatch, Path("/a/new"), Path("/a/old"), 100.0, asked)
    result = runner.invoke(app, ["bench", "switch", "cpu", "--against", "/a/old"])
    assert result.exit_code == 0, result.output
    assert asked.count(("new", "switch")) == asked.count(("old", "cpu")) == 1 + 5
    assert "switch against" in result.stdout
    assert "cpu against" in result.stdout


def refused(arguments: Sequence[str]) -> str:
    result = runner.invoke(app, ["bench", *arguments], env={"COLUMNS": "300", "NO_COLOR": "1"})
    assert result.exit_code == 2
    return result.stderr


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    assert (
        "bench 'idle' cannot be compared with another checkout; those that can be are latency, "
        "throughput, cpu, switch" in refused(["idle", "--against", str(tmp_path)])
    )
    assert f"--against {tmp_path}: is no checkout of Penstock, it has no penstock" in refused(
        ["cpu", "--against", str(tmp_path)]
    )


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    assert "goes with --against only" in refused(["cpu", "--turns", "3"])
    assert "is for bench control, which is not compared" in refused(
        ["--only", "reaction", "--against", str(tmp_path)]
    )


def test_a_turn_that_breaks_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(checkout: Checkout, bench: str) -> Ran:
        raise CheckoutError("/a/old: bench cpu gave no figures (exit code 1)")

    play(monkeypatch, Path("/a/new"), Path("/a/old"), 100.0, [])
    playing(monkeypatch, run)
    assert "penstock: /a/old: bench cpu gave no figures (exit code 1)" in refused(
        ["cpu", "--against", "/a/old"]
    )
