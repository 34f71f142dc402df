"""The figures of a bench as tables for people; `--json` has every number.

What was measured several times is shown by its median, with the lowest and the highest. Figures with the
same parts become the rows of one table.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

MOST_COLUMNS = 8
_MANY = 1000
Figures = Mapping[str, Any]


def tables(figures: Figures, title: str) -> Iterator[Table]:
    """Single figures first, then those with parts, then what has parts of parts."""
    merged = {name: _merged(value) for name, value in figures.items()}
    single = {name: value for name, value in merged.items() if not isinstance(value, Mapping)}
    rows = {name: row for name, value in merged.items() if (row := _row(value)) is not None}
    if single:
        yield _listed(single, title)
    yield from _rows(rows, f"{title}: details" if single else title)
    for name, value in merged.items():
        if isinstance(value, Mapping) and name not in rows:
            yield from tables(value, f"{title}: {words(name)}")


def words(name: str) -> str:
    """The name of a figure as people read it; units stay behind it.

    >>> words("penstock_1_hop_mean_ms"), words("items_per_s")
    ('penstock 1 hop mean ms', 'items/s')
    """
    return name.replace("_per_s", "/s").replace("_", " ")


def shown(value: Any) -> str:
    """A value, or the median of several with the lowest and the highest."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= _MANY else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return _several(value)
    return str(value)


def _several(values: Sequence[Any]) -> str:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not values:
        return "none"
    if len(numbers) + sum(value is None for value in values) < len(values) or not numbers:
        return ", ".join(map(shown, values))
    low, middle, high = min(numbers), statistics.median(numbers), max(numbers)
    spread = "" if low == high else f" ({shown(low)} to {shown(high)})"
    unknown = len(values) - len(numbers)
    return f"{shown(middle)}{spread}{f', {unknown} unknown' if unknown else ''}"


def _merged(value: Any) -> Any:
    """Turns of one thing become one, each of whose parts has several values."""
    if not isinstance(value, list | tuple) or not any(isinstance(turn, Mapping) for turn in value):
        return value
    turns = [turn for turn in value if isinstance(turn, Mapping)]
    parts = dict.fromkeys(part for turn in turns for part in turn)
    return {part: [turn.get(part) for turn in turns] for part in parts}


def _row(value: Any) -> dict[str, Any] | None:
    """Parts side by side, those of parts behind the name of theirs; None for what is a table of its own."""
    if not isinstance(value, Mapping) or all(isinstance(_merged(inner), Mapping) for inner in value.values()):
        return None
    found: dict[str, Any] = {}
    for part, inner in value.items():
        whole = _merged(inner)
        if not isinstance(whole, Mapping):
            found[part] = whole
            continue
        if any(isinstance(_merged(deeper), Mapping) for deeper in whole.values()):
            return None
        found |= {f"{part}_{name}": deeper for name, deeper in whole.items()}
    return found


def _rows(rows: Mapping[str, Mapping[str, Any]], title: str) -> Iterator[Table]:
    """Rows that share their columns in one table; a row that has none in common with others is a list."""
    left = dict(rows)
    while left:
        first = next(iter(left))
        alike = [name for name, row in left.items() if _alike(row, left[first])]
        taken = {name: left.pop(name) for name in alike}
        if len(taken) == 1:
            yield _listed(taken[first], f"{title}: {words(first)}")
        else:
            yield _side_by_side(taken, title)


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    shared = one.keys() & other.keys()
    return 2 * len(shared) >= max(len(one), len(other))


def _listed(figures: Mapping[str, Any], title: str) -> Table:
    table = Table("figure", title=title, title_justify="left")
    table.add_column("value", justify="right")
    for name, value in figures.items():
        table.add_row(words(name), shown(value))
    return table


def _side_by_side(rows: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    kept, more = columns[:MOST_COLUMNS], len(columns) - MOST_COLUMNS
    table = Table(
        "", title=title, title_justify="left", caption=f"and {more} more with --json" if more > 0 else None
    )
    for column in kept:
        table.add_column(words(column), justify="right")
    for name, row in rows.items():
        table.add_row(words(name), *(shown(row[column]) if column in row else "" for column in kept))
    return table
