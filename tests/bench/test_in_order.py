"""A sink that sees what was lost, doubled or reordered without keeping anything."""

from typing import Any

import pytest

from penstock.bench.in_order import in_order
from penstock.bench.throughput import made
from penstock.observe.reported import Metrics, TaskMetrics
from tests.io.sink_context import FakeContext


class Ended:
    """A job, as far as it is asked."""

    def __init__(self, sent: int, came: int) -> None:
        self.tasks = {"items": TaskMetrics(1, 1, items_in=sent), "drop": TaskMetrics(1, 1, items_in=came)}

    def metrics(self) -> Metrics:
        return Metrics(self.tasks, {})


def wrong(sent: int, *came: list[int]) -> int:
    """Of so many items, of which these came each time that the sink was open."""
    with in_order() as sink:
        for numbers in came:
            sink.open(FakeContext(replica=0))
            for number in numbers:
                sink.write(made(0, number, 0))
            sink.close()
        job: Any = Ended(sent, sum(map(len, came)))
        return sink.wrong(job, "items", "drop")


def test_all_that_were_sent_came_once_and_in_their_order() -> None:
    assert wrong(300, list(range(300))) == 0
    assert wrong(4, [0, 1], [2, 3]) == 0


@pytest.mark.parametrize(
    "came", [[0, 1, 3], [0, 1, 2, 2, 3], [0, 2, 1, 3], [0, 1, 1, 3], [0, 0, 2, 3], [3, 1, 2, 3]]
)
def test_one_that_was_lost_and_one_that_was_doubled_do_not_make_up_for_each_other(came: list[int]) -> None:
    assert wrong(4, came) > 0


def test_a_sink_that_has_told_nothing_is_no_proof() -> None:
    with pytest.raises(FileNotFoundError):
        wrong(0)
