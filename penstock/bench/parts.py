"""Benches that are made of parts: each has figures and checks, and can be run alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.bench.harness import Check, Effort, Result
from penstock.bench.telling import told

Part = Callable[[Effort], tuple[dict[str, Any], list[Check]]]


def run_parts(bench: str, parts: Mapping[str, Part], effort: Effort, only: Sequence[str]) -> Result:
    """All of them, or those named, one after the other."""
    figures: dict[str, Any] = {}
    checks: list[Check] = []
    for name in told(only or list(parts), f"{bench} {{}}".format):
        figures[name], found = parts[name](effort)
        checks += found
    return Result(bench, figures, checks)
