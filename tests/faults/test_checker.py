"""The checker of trials: it must be able to fail."""

from pathlib import Path

import pytest

from penstock.faults import checker
from penstock.faults.items import Once, Witness, through
from penstock.testing.arrivals import Arrivals
from tests.faults.arrived import arrived, of
from tests.io.sink_context import FakeContext
from tests.testing.entries import entries

STRUCK_NS = 3_000_000_000


def test_a_lost_item_is_seen() -> None:
    assert of([0, 1, 3]).lost({0: 4}) == 1
    assert of([0, 1, 2]).lost({0: 4}) == 1, "also the last one"
    assert of([0, 1, 2, 3]).lost({0: 4}) == 0


def test_what_was_committed_must_not_come_again() -> None:
    seen = of([0, 1, 2, 3, 2, 3, 4])
    assert checker.twice_though_committed(seen, {0: 2}, 0) == 0
    assert checker.twice_though_committed(seen, {0: 3}, 0) == 1
    assert checker.twice_though_committed(seen, {1: 100}, 0) == 0
    assert checker.twice_though_committed(seen, {}, 0) == 0


def test_what_came_twice_before_it_was_committed_did_not_come_again() -> None:
    seen = entries((0, index, 0, arrived_ns, 0) for arrived_ns, index in enumerate([0, 1, 1, 0, 0, 1]))
    committed = {0: 2}
    assert [checker.twice_though_committed(seen, committed, noted_ns) for noted_ns in range(7)] == [
        *(4, 4, 4, 3, 2, 1, 0)
    ]


def test_order_holds_for_each_key() -> None:
    passed = [(0, 1, 0, 30, 0), (0, 0, 0, 40, 0), (0, 2, 0, 50, 0)]
    assert checker.reordered_of_a_key(entries(passed), 2) == 0, "0 and 1 are other keys"
    assert checker.reordered_of_a_key(entries(passed), 1) == 1
    assert checker.reordered_of_a_key(entries(passed[::-1]), 1) == 1, "files are read in any order"


def test_order_holds_by_the_way_that_items_took() -> None:
    first, again = through((0, 5, 0, 0, None), 7), through((0, 5, 0, 0, None), 8)
    assert first[3] != again[3]
    replayed = [(0, 5, 0, 0, first[3]), (0, 6, 0, 0, first[3]), (0, 5, 0, 0, again[3])]
    assert entries(replayed).reordered_by_mark() == 0, "a successor goes back, which is another way"
    swapped = [(0, 6, 0, 0, first[3]), (0, 5, 0, 0, first[3])]
    assert entries(swapped).reordered_by_mark() == 1
    one, other = through(through((0, 0, 0, 0, None), 1), 2), through(through((0, 0, 0, 0, None), 2), 1)
    assert one[3] != other[3]


@pytest.mark.parametrize(
    ("late", "expected"),
    [(None, 0.0), ((3.0, 3.2), 0.5), ((3.0, 5.4), 2.5), ((4.0, 4.1), 1.5), ((1.0, 2.9), 0.0)],
)
def test_recovery_ends_with_the_last_window_that_was_not_held(
    late: tuple[float, float] | None, expected: float
) -> None:
    assert checker.recovered_s(arrived(8.0, late=late), STRUCK_NS) == expected


def test_a_bound_that_never_holds_again_is_no_recovery() -> None:
    assert checker.recovered_s(arrived(8.0, late=(4.0, 8.0)), STRUCK_NS) is None
    assert checker.recovered_s(arrived(2.0), STRUCK_NS) is None, "the fault came after the last item"
    assert checker.recovered_s(arrived(8.0, latency_ms=150.0), STRUCK_NS) is None


def test_a_flow_has_settled_when_two_seconds_were_held() -> None:
    seen = arrived(12.0, late=(3.0, 4.2))
    assert checker.settled_s(seen, STRUCK_NS) == 1.5
    assert checker.settled_s(arrived(4.5), STRUCK_NS) is None, "too short to tell"
    assert checker.held_share(seen) == pytest.approx(21 / 24)
    assert checker.held_share(of([])) is None


def test_of_an_item_that_came_twice_the_first_arrival_counts() -> None:
    rows = [(0, 0, STRUCK_NS, STRUCK_NS + 1, 0), (0, 0, STRUCK_NS, STRUCK_NS + 10**9, 1)]
    assert checker.recovered_s(entries(rows), STRUCK_NS) == 0.0


def test_for_how_long_items_came_due_after_the_fault() -> None:
    assert checker.remaining_s(arrived(8.0), STRUCK_NS) == pytest.approx(5.0, abs=0.02)
    assert checker.remaining_s(arrived(2.0), STRUCK_NS) == 0.0
    assert checker.remaining_s(of([]), STRUCK_NS) == 0.0


def test_both_sinks_show_the_same(tmp_path: Path) -> None:
    item = through((1, 7, 100, 0, None), 3)
    witness, once = Witness(str(tmp_path)), Once(tmp_path)
    context = FakeContext(item_id=(1, 7))
    for sink in (witness, once):
        sink.open(context)
        sink.write(item)
        sink.write(item)
        sink.close()
    shown, written = Arrivals(Witness(str(tmp_path))).new(), checker.written_once(tmp_path)
    assert (shown.partition[0], shown.index[0], shown.due_ns[0]) == (1, 7, 100)
    assert (written.partition[0], written.index[0], written.due_ns[0]) == (1, 7, 100)
    assert written.arrived_ns[0] > 100
    assert (len(shown), len(written)) == (2, 1)


def test_a_line_that_is_just_being_written_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "part-00000.jsonl").write_bytes(b'{"id":[1,0],"item":[0,0,1,2,3]}\n{"id":[1,1],"it')
    assert checker.written_once(tmp_path).index.tolist() == [0]
