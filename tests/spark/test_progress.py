"""Entries of progress: one a second, from the totals of the moment."""

from penstock.spark.metrics import Metrics, TaskMetrics
from penstock.spark.progress import Progress
from penstock.stats.sketch import Sketch


def test_an_entry_a_second() -> None:
    progress = Progress()
    assert progress.last is None
    assert progress.is_due()
    sketch = Sketch()
    sketch.add(2.0)
    progress.note(3, Metrics({"work": TaskMetrics(active=1, pool=2, items_in=7)}, {"out": sketch}))
    assert not progress.is_due()
    assert progress.entries == [progress.last]
    assert progress.last is not None
    assert progress.last["batch"] == 3
    assert progress.last["tasks"]["work"]["items_in"] == 7
    assert progress.last["latency_ms"]["out"]["mean"] == 2.0
