"""A rate from a CSV file."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.io.schedule import ScheduleError
from penstock.io.trace import trace


def write(path: Path, rows: list[tuple[object, object]]) -> Path:
    lines = ["timestamp,value", *(f"{at},{value}" for at, value in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_last_until_the_next_one(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", [("2015-02-26 21:42:53", 10), ("2015-02-26 21:47:53", 40)])
    schedule = trace(path)
    assert list(schedule.spans_s) == [300, 300]
    assert list(schedule.rates_per_s) == [10, 40]
    assert schedule.total_items == 15_000


def test_speed_up_shortens_and_scale_multiplies(tmp_path: Path) -> None:
    schedule = trace(write(tmp_path / "t.csv", [(0, 10), (60, 40)]), speed_up=60, scale=2)
    assert list(schedule.spans_s) == [1, 1]
    assert list(schedule.rates_per_s) == [20, 80]


def test_packed_files_and_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"when,load\n0,1\n2,3\n"))
    assert trace(path, column="load", time_column="when").rates_per_s == (1, 3)


@given(rates=st.lists(st.floats(0.1, 1000), min_size=2, max_size=20), speed_up=st.floats(0.5, 100))
def test_the_integral_is_the_sum_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, rates: list[float], speed_up: float
) -> None:
    path = write(tmp_path_factory.mktemp("trace") / "t.csv", [(n * 10, rate) for n, rate in enumerate(rates)])
    schedule = trace(path, speed_up=speed_up)
    assert schedule.items_by(schedule.starts_s[-1]) == pytest.approx(sum(rates) * 10 / speed_up)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("timestamp,other\n0,1\n", "has no column 'value'; it has timestamp, other"),
        ("timestamp,value\n0,1\n", "has 1 rows; it takes two to know how long one lasts"),
        ("timestamp,value\n0,1\n1,many\n", "line 3: 'many' is not a number"),
        ("timestamp,value\nnoon,1\n", "line 2: 'noon' is neither a number of seconds nor an ISO timestamp"),
        ("timestamp,value\n5,1\n5,1\n", "the time of data row 2 is not later than the row before it"),
    ],
)
def test_refusals_name_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(ScheduleError) as caught:
        trace(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_speed_up_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match="speed_up and scale must be > 0, not 0 and 1"):
        trace(tmp_path / "t.csv", speed_up=0)
