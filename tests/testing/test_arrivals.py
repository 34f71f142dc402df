"""Reading a ledger: losses, duplicates, order, latency."""

import pickle
import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import Arrivals, arrivals
from tests.io.sink_context import FakeContext
from tests.testing.entries import entries


def test_what_is_written_is_read_and_nothing_twice() -> None:
    with Ledger() as ledger:
        worker = pickle.loads(pickle.dumps(ledger))
        worker.open(FakeContext(replica=2))
        reader = Arrivals(ledger)
        worker.write((1, 5, 100, 7, b"payload"))
        first = reader.new()
        assert (first.partition[0], first.index[0], first.due_ns[0], first.mark[0]) == (1, 5, 100, 7)
        assert first.arrived_ns[0] > 100
        assert len(reader.new()) == 0
        worker.write((1, 6, 200, 7, None))
        assert reader.new().index.tolist() == [6]
        worker.close()
        assert len(arrivals(ledger)) == 2
    assert not Path(ledger.directory).exists()


def test_stamped_items_are_32_bytes_marked_with_their_lag() -> None:
    partition, index, due_ns, lag_ns, payload = stamped(3, 9, 1, due_ns=50)
    assert (partition, index, due_ns) == (3, 9, 50)
    assert lag_ns > 0
    assert isinstance(payload, bytes)
    assert len(payload) == 32


@given(
    items=st.integers(1, 60),
    gone=st.sets(st.integers(0, 59)),
    twice=st.sets(st.integers(0, 59)),
    seed=st.integers(0, 99),
)
def test_losses_and_duplicates_are_counted_exactly(
    items: int, gone: set[int], twice: set[int], seed: int
) -> None:
    came = [n for n in range(items) if n not in gone]
    again = [n for n in came if n in twice]
    mixed = came + again
    random.Random(seed).shuffle(mixed)
    seen = entries((0, n, 0, 0, 0) for n in mixed)
    assert seen.lost({0: items}) == items - len(came)
    assert seen.duplicated() == len(again)


def test_lost_without_an_expectation_counts_the_holes() -> None:
    assert entries([(0, 0, 0, 0, 0), (0, 3, 0, 0, 0), (1, 0, 0, 0, 0)]).lost() == 2
    assert entries([]).lost({0: 4}) == 4
    assert entries([]).duplicated() == 0


def test_order_is_that_of_a_channel() -> None:
    seen = entries([(0, 1, 0, 0, 5), (0, 0, 0, 0, 6), (0, 3, 0, 0, 5), (0, 2, 0, 0, 5)])
    assert seen.reordered() == 2
    assert seen.reordered_by_mark() == 1


def test_latency_and_windows() -> None:
    seen = entries([(0, 0, 1_000_000, 3_000_000, 0), (0, 1, 2_000_000, 2_500_000, 0)])
    assert seen.latency_ms().tolist() == [2.0, 0.5]
    assert seen.due_between(2_000_000, 3_000_000).index.tolist() == [1]
