"""Source and sinks of a trial."""

import pickle
from pathlib import Path
from typing import Any

from penstock.faults.items import Pass, numbers
from penstock.io.protocol import SourceClock

SECOND = 1_000_000_000


def test_time_zero_is_that_of_the_first_start(tmp_path: Path) -> None:
    source = pickle.loads(pickle.dumps(numbers(10.0, 2.0, tmp_path / "zero")))
    first = source.open("0/2", 0, SourceClock(5 * SECOND, 0))
    items, due = first.read(3, 0.0) or ([], [])
    assert [(item[0], item[1]) for item in items] == [(0, 0), (0, 1), (0, 2)]
    assert (
        due == [item[2] for item in items] == [5 * SECOND, 5 * SECOND + 200_000_000, 5 * SECOND + 400_000_000]
    )
    later = source.open("0/2", 3, SourceClock(9 * SECOND, 3))
    assert (later.read(1, 0.0) or ([], []))[1] == [5 * SECOND + 600_000_000], (
        "what came due meanwhile is late"
    )
    assert source.counts() == {0: 10, 1: 10}
    assert numbers(10.0, None, tmp_path / "zero").counts() == {}


def test_an_instance_of_a_worker_marks_what_passes(tmp_path: Path) -> None:
    marks: list[Any] = []
    for _ in range(2):
        task = Pass()
        task.open(None)
        task.process((0, 1, 2, 3, None), marks.append)
        task.process((0, 2, 3, 3, None), marks.append)
    assert marks[0][3] == marks[1][3]
    assert marks[0][3] != marks[2][3]
