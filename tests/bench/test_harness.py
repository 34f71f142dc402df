"""The form of a bench's result."""

import io
import json
from functools import partial

import pytest
from rich.console import Console

from penstock.bench.harness import Check, Operator, Result, median, ratio
from penstock.bench.registry import BENCHES, UnknownBenchError, find


def test_the_json_is_as_documented() -> None:
    result = Result(
        "latency", {"mean_ms": 0.5}, [Check("a ratio", 1.5, "<=", 2.0), Check("none", None, "==", 0)]
    )
    assert json.loads(result.to_json()) == {
        "bench": "latency",
        "figures": {"mean_ms": 0.5},
        "checks": [
            {"name": "a ratio", "value": 1.5, "op": "<=", "bar": 2.0, "ok": True},
            {"name": "none", "value": None, "op": "==", "bar": 0, "ok": False},
        ],
        "ok": False,
    }
    assert "\n" not in result.to_json()


@pytest.mark.parametrize(
    ("op", "verdicts"),
    [
        ("<=", (True, True, False)),
        ("<", (True, False, False)),
        (">=", (False, True, True)),
        (">", (False, False, True)),
        ("==", (False, True, False)),
    ],
)
def test_operators(op: Operator, verdicts: tuple[bool, ...]) -> None:
    assert tuple(Check("c", value, op, 2.0).ok for value in (1.0, 2.0, 3.0)) == verdicts


def test_a_result_without_checks_is_ok_and_tables_show_failures() -> None:
    assert Result("idle", {}, []).ok
    console = Console(file=io.StringIO(), width=100)
    failed = Result("idle", {"a": [1.0, 2.5], "b": {"c": None}}, [Check("x", 3.0, "<", 1.0)])
    failed.show(console)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "idle: FAILED" in shown
    assert "1.75 (1 to 2.5)" in shown
    assert "< 1" in shown


def test_unknown_is_never_a_number() -> None:
    assert median([]) is None
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert ratio(None, 1.0) is None
    assert ratio(1.0, None) is None
    assert ratio(1.0, 0.0) is None
    assert ratio(1.0, 2.0) == 0.5


def test_unknown_benches_are_refused_by_name() -> None:
    with pytest.raises(UnknownBenchError, match=r"no bench is called 'speed'; there are latency, throughput"):
        find("speed")
    assert list(BENCHES)[:4] == ["latency", "throughput", "cpu", "codecs"]


def test_experiments_are_chosen_by_name() -> None:
    chosen = find("control", ["reaction"])
    assert isinstance(chosen, partial)
    assert chosen.keywords == {"only": ("reaction",)}
    with pytest.raises(UnknownBenchError, match=r"'control' has no experiment 'speed'; it has rate_limited"):
        find("control", ["speed"])
    with pytest.raises(UnknownBenchError, match=r"'cpu' has no experiment 'speed'; it runs as a whole only"):
        find("cpu", ["speed"])
