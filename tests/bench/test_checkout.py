"""Checkouts: what is refused, and which engine a turn runs. The benches are played by small packages."""

import json
from pathlib import Path

import pytest

import penstock
from penstock.bench.checkout import Checkout, CheckoutError

PLAYED = """
import os, sys
class Result:
    def __init__(self, text):
        self.to_json = lambda: text
def find(name):
    return lambda effort: Result(run(name, effort))
def run(name, effort):
"""
REPORT = {"bench": "cpu", "figures": {"a_ms": 1.5}, "checks": [], "ok": False}


def checkout(root: Path, *, bench: str = "", build: str = "", package: str = "") -> Path:
    """A package with benches and a builder of the bridge, as every version has them."""
    (root / "java").mkdir(parents=True)
    for directory in ("penstock", "penstock/bench", "penstock/spark"):
        (root / directory).mkdir()
        (root / directory / "__init__.py").write_text(package if directory == "penstock" else "")
    (root / "penstock" / "bench" / "harness.py").write_text(
        "class Effort:\n    QUICK = 'quick'\nCheck = Result = None\n"
    )
    (root / "penstock" / "bench" / "baselines.py").write_text("bench_session = None\n")
    (root / "penstock" / "bench" / "latency.py").write_text("SLOTS = hops = task_and_sink = None\n")
    (root / "penstock" / "bench" / "registry.py").write_text(PLAYED + f"    {bench or 'pass'}\n")
    (root / "penstock" / "spark" / "build_bridge.py").write_text(build)
    return root


@pytest.mark.parametrize("missing", ["penstock", "java", "penstock/spark/build_bridge.py"])
def test_a_directory_that_is_no_checkout_is_refused(tmp_path: Path, missing: str) -> None:
    root = checkout(tmp_path / "other")
    (root / missing).rename(root / "elsewhere")
    with pytest.raises(CheckoutError) as refused:
        Checkout.at(root)
    assert str(refused.value) == (
        f"--against {root}: is no checkout of Penstock, it has no {missing}; "
        "name the top directory of one, for example of `git worktree add ../before main`"
    )


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        CheckoutError, match=r"--against .*/none: there is no such directory; name a checkout"
    ):
        Checkout.at(tmp_path / "none")


def test_the_own_checkout_is_the_one_that_runs() -> None:
    assert Path(penstock.__file__).is_relative_to(Checkout.own().root)


def test_the_bridge_is_built_by_its_own_builder(tmp_path: Path) -> None:
    build = "from pathlib import Path\nPath(__file__).with_name('built').touch()\n"
    other = Checkout.at(checkout(tmp_path / "other", build=build))
    other.prepare()
    assert (other.root / "penstock" / "spark" / "built").exists()


def test_a_bridge_that_does_not_compile_is_said(tmp_path: Path) -> None:
    other = Checkout.at(checkout(tmp_path / "other", build="import sys\nsys.exit('penstock: no javac')"))
    with pytest.raises(CheckoutError, match=r"other: its Java bridge was not built\npenstock: no javac"):
        other.prepare()


def test_an_engine_that_another_one_hides_is_refused(tmp_path: Path) -> None:
    root = checkout(tmp_path / "other", package="__file__ = '/elsewhere/penstock/__init__.py'\n")
    expected = r"other: its engine would not be measured, `import penstock` gives /elsewhere/penstock/"
    with pytest.raises(CheckoutError, match=expected):
        Checkout.at(root).prepare()


def test_turns_are_the_quick_bench_of_that_checkout_in_one_process(tmp_path: Path) -> None:
    said = json.dumps({**REPORT, "figures": {"asked": "NAME EFFORT", "pid": "PID"}})
    filled = ".replace('NAME', name).replace('EFFORT', effort).replace('PID', str(os.getpid()))"
    bench = f"print('a note'); return {said!r}{filled}"
    other = Checkout.at(checkout(tmp_path / "other", bench=bench))
    with other.contestant() as run:
        first, second = run("cpu").report.figures, run("switch").report.figures
    assert (first["asked"], second["asked"]) == ("cpu quick", "switch quick")
    assert first["pid"] == second["pid"]
    assert not Path("/proc", first["pid"]).exists()


@pytest.mark.parametrize("bench", ["sys.exit('it fell over')", "raise ValueError('it fell over')"])
def test_a_turn_without_figures_is_said_with_its_last_words(tmp_path: Path, bench: str) -> None:
    other = Checkout.at(checkout(tmp_path / "other", bench=bench))
    with (
        other.contestant() as run,
        pytest.raises(CheckoutError, match=r"(?s)bench cpu gave no figures: exit code 1.*it fell over"),
    ):
        run("cpu")


def test_a_turn_that_says_nothing_of_use_is_refused(tmp_path: Path) -> None:
    other = Checkout.at(checkout(tmp_path / "other", bench="return '[]'"))
    with other.contestant() as run, pytest.raises(CheckoutError, match="bench cpu gave no figures: Expected"):
        run("cpu")
