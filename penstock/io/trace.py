"""A rate read from a CSV file: real load, as fast as wanted."""

import csv
import gzip
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import IO

from penstock.io.schedule import Schedule, ScheduleError


def trace(
    path: str | Path,
    column: str = "value",
    time_column: str = "timestamp",
    speed_up: float = 1.0,
    scale: float = 1.0,
) -> Schedule:
    """Each row's `column`, times `scale`, is the rate in items/s until the time of the next row.

    Times are numbers of seconds or ISO timestamps and must increase; the last row lasts as long as the one
    before it, then the source ends. With `speed_up=60` an hour of the trace passes in a minute, at the
    same rates. A file name ending in `.gz` is unpacked.
    """
    if speed_up <= 0 or scale <= 0:
        raise ScheduleError(f"trace {path}: speed_up and scale must be > 0, not {speed_up!r} and {scale!r}")
    times_s: list[float] = []
    rates: list[float] = []
    with _opened(Path(path)) as lines:
        reader = csv.DictReader(lines)
        for name in (column, time_column):
            if name not in (reader.fieldnames or ()):
                raise ScheduleError(
                    f"trace {path} has no column {name!r}; it has {', '.join(reader.fieldnames or ())}"
                )
        for row in reader:
            where = f"trace {path}, line {reader.line_num}"
            times_s.append(_time_s(row[time_column], where))
            rates.append(_number(row[column], where) * scale)
    if len(times_s) < 2:
        raise ScheduleError(f"trace {path} has {len(times_s)} rows; it takes two to know how long one lasts")
    spans = [later - earlier for earlier, later in pairwise(times_s)]
    for index, span_s in enumerate(spans):
        if span_s <= 0:
            raise ScheduleError(
                f"trace {path}: the time of data row {index + 2} is not later than the row before it"
            )
    spans.append(spans[-1])
    return Schedule(tuple(span_s / speed_up for span_s in spans), tuple(rates))


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="", encoding="utf-8")
    return path.open(newline="", encoding="utf-8")


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ScheduleError(f"{where}: {text!r} is not a number") from None


def _time_s(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            raise ScheduleError(
                f"{where}: {text!r} is neither a number of seconds nor an ISO timestamp"
            ) from None
