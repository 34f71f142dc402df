"""Entries of progress: one a second, from the totals of the moment."""

from penstock.observe.progress import Progress
from penstock.observe.reported import Metrics, TaskMetrics
from penstock.stats.sketch import Sketch


def test_an_entry_a_second() -> None:
    progress = Progress()
    assert progress.entries == []
    assert progress.is_due()
    sketch = Sketch()
    sketch.add(2.0)
    progress.note(3, Metrics({"work": TaskMetrics(active=1, pool=2, items_in=7)}, {"out": sketch}))
    assert not progress.is_due()
    (entry,) = progress.entries
    assert progress.last == entry
    assert entry["batch"] == 3
    assert entry["tasks"]["work"]["items_in"] == 7
    assert entry["latency_ms"]["out"]["mean"] == 2.0
