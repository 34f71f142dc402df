"""What `stop()` tells."""

from penstock.spark.drained import Drained


def test_it_is_told_in_one_line() -> None:
    drained = Drained(7, {"work": 1200, "idle": 0, "out": 30}, 0.42)
    assert str(drained) == "drained in 0.4 s (work 1,200, out 30 under way), commit 7 is the last"
    assert str(Drained(None, {"out": 0}, 2.0)) == (
        "drained in 2.0 s (no item under way), nothing was to be committed"
    )
