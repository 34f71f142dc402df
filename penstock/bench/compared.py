"""Which figures of a bench two checkouts are compared by, and which direction is the better one.

Only figures that speak of the engine: what Spark alone can do is the same for both. Medians and rates are
held against the bar; what a few slow items decide is shown without one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.bench.harness import median

WORSE_AT_MOST = 0.05


class Better(Enum):
    """Which of two values of a figure is the better one."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its name with the unit, where it stands in a bench's figures, whether a bar holds it."""

    name: str
    path: tuple[str, ...]
    better: Better = Better.LOWER
    worse_at_most: float | None = WORSE_AT_MOST

    def value_in(self, figures: Mapping[str, Any]) -> float | None:
        """The value of one turn, the median if the bench took it several times; None if it is not there."""
        values = _under(figures, self.path)
        known = [float(value) for value in values if isinstance(value, int | float)]
        return median(known) if len(known) == len(values) else None


def _under(node: Any, path: tuple[str, ...]) -> list[Any]:
    """All values at the path; a list on the way stands for each of its members."""
    if isinstance(node, list):
        return [value for member in node for value in _under(member, path)]
    if not path:
        return [node]
    return _under(node.get(path[0]), path[1:]) if isinstance(node, dict) else [None]


def _latency(name: str, key: str) -> tuple[Figure, ...]:
    return (
        Figure(f"{name}_p50_ms", ("turns", key, "p50_ms")),
        Figure(f"{name}_mean_ms", ("turns", key, "mean_ms"), worse_at_most=None),
        Figure(f"{name}_p99_ms", ("turns", key, "p99_ms"), worse_at_most=None),
    )


COMPARED: Mapping[str, tuple[Figure, ...]] = {
    "latency": (
        *_latency("one_hop", "penstock_1_hop"),
        *_latency("three_hops", "penstock_3_hops"),
        *_latency("task_and_sink", "penstock_task_and_sink"),
    ),
    "throughput": (
        Figure("at_once_items_per_s", ("at_once_items_per_s",), Better.HIGHER),
        Figure("after_20_ms_items_per_s", ("after_20_ms_items_per_s",), Better.HIGHER),
    ),
    "cpu": (
        Figure("at_once_cpu_us_per_item", ("at_once_cpu_us_per_item",)),
        Figure("after_100_ms_cpu_us_per_item", ("after_100_ms_cpu_us_per_item",)),
    ),
    "switch": (
        Figure("up_ms", ("turns_up_ms",)),
        Figure("down_ms", ("turns_down_ms",), worse_at_most=None),
    ),
}
