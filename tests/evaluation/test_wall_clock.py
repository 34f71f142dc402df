"""Sources that do not wait for a flow that is restarted."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.evaluation.wall_clock import DueRates, on_wall_clock
from penstock.io import paced
from penstock.io.protocol import SourceClock
from penstock.io.schedule import NS_PER_S, steps
from penstock.testing.engine import FakeEngine
from tests.report.recordings import snapshot

BEGIN_NS = 5 * NS_PER_S


def index(partition: int, index: int, seed: int) -> int:
    return index


def opened_at(offset: int, start_s: float, now_s: float) -> list[tuple[int, int]]:
    """What a reader that is opened late returns at once, with when it was due."""
    source = on_wall_clock(paced(index, steps([(10, 20)])), BEGIN_NS)
    clock = SourceClock(round(start_s * NS_PER_S), offset, now_ns=lambda: round(now_s * NS_PER_S))
    reader = source.open(source.splits[0], offset, clock)
    items, due = reader.read(1000, 0.0) or ([], None)
    return list(zip(items, due or [], strict=True))


@given(offset=st.integers(0, 40), start_s=st.floats(7, 9))
def test_items_are_due_at_one_moment_whenever_the_source_is_opened(offset: int, start_s: float) -> None:
    found = opened_at(offset, start_s, now_s=10.0)
    assert found == [(k, BEGIN_NS + k * NS_PER_S // 20) for k in range(offset, 101)]


def test_snapshots_say_what_was_due_and_not_what_was_sent() -> None:
    source = on_wall_clock(paced(index, steps([(10, 20), (10, 40)])), BEGIN_NS)
    times = iter([0, 10 * NS_PER_S, 15 * NS_PER_S, 20 * NS_PER_S])
    engine = FakeEngine(lambda number, _: snapshot(rate=1.0) if number < 3 else None)
    due = DueRates(engine, source, clock_ns=lambda: next(times))
    found = [due.observe() for _ in range(4)]
    assert [one.tasks["source"].rate_total for one in found if one is not None] == [20.0, 20.0, 40.0]
    assert found[3] is None
    engine.stand_still(300.0, 4.0)
    assert due.boundary() == engine.boundary()
