"""Clock offsets: never further from the truth than the fastest exchange allows, whatever the ways took."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.clock_offset import REMEMBERED, ClockOffset, Exchange

S = 1_000_000_000
offsets = st.integers(-(10**18), 10**18)
ways = st.integers(0, 10 * S)


def exchange(ahead_ns: int, out_ns: int, back_ns: int, thinking_ns: int = 1000, at_ns: int = 0) -> Exchange:
    """As a clock that is ahead by so much would see it."""
    received = at_ns + out_ns
    answered = received + thinking_ns
    return Exchange(at_ns + ahead_ns, received, answered, answered + back_ns + ahead_ns)


@given(offsets, ways, ways, st.integers(0, S), offsets)
def test_the_truth_is_within_the_error(ahead: int, out: int, back: int, thinking: int, at: int) -> None:
    seen = exchange(ahead, out, back, thinking, at)
    assert abs(seen.ahead_ns - ahead) <= seen.error_ns
    assert seen.error_ns <= (out + back) // 2 + 1


@given(offsets, st.lists(st.tuples(ways, ways), min_size=1, max_size=3 * REMEMBERED))
def test_the_fastest_of_the_latest_exchanges_counts(ahead: int, trips: list[tuple[int, int]]) -> None:
    offset = ClockOffset()
    for number, (out, back) in enumerate(trips):
        offset.learn(exchange(ahead, out, back, at_ns=number * S))
    fastest = min((out + back) // 2 for out, back in trips[-REMEMBERED:]) + 1
    found = offset.ahead_ns
    assert found is not None
    # Zero is chosen where it is possible, and may then be as far from the truth as the error twice.
    assert abs(found - ahead) <= (2 * fastest if found == 0 else fastest)


@given(ways, ways)
def test_one_clock_is_recognised_however_lopsided_the_ways(out: int, back: int) -> None:
    offset = ClockOffset()
    offset.learn(exchange(0, out, back))
    assert offset.ahead_ns == 0


def test_nothing_is_known_before_the_first_exchange() -> None:
    assert ClockOffset().ahead_ns is None


def test_time_that_runs_backwards_says_nothing() -> None:
    offset = ClockOffset()
    offset.learn(Exchange(sent_ns=100, received_ns=0, answered_ns=50, returned_ns=90))
    assert offset.ahead_ns is None


def test_a_clock_that_drifts_is_followed() -> None:
    """By less than the exchanges can tell, so that old ones must be forgotten: 1 us a second at most here."""
    offset = ClockOffset()
    for second in range(5 * REMEMBERED):
        offset.learn(exchange(5 * S + 1000 * second, 20_000, 20_000 + second))
    found = offset.ahead_ns
    assert found is not None
    assert abs(found - (5 * S + 1000 * 5 * REMEMBERED)) <= 20_100 + 1000 * REMEMBERED


@given(offsets, offsets, st.lists(st.tuples(ways, ways), max_size=REMEMBERED), st.tuples(ways, ways))
def test_a_clock_that_jumps_is_noticed_at_once(
    before: int, after: int, trips: list[tuple[int, int]], last: tuple[int, int]
) -> None:
    """If the jump is too small to contradict what was seen before, it is within the error of that."""
    offset = ClockOffset()
    for out, back in trips:
        offset.learn(exchange(before, out, back))
    offset.learn(exchange(after, *last))
    found = offset.ahead_ns
    assert found is not None
    errors = [(out + back) // 2 + 1 for out, back in (*trips, last)]
    assert abs(found - after) <= 2 * max(errors) + 2 * (sum(last) // 2 + 1)


def test_a_jump_leaves_nothing_of_what_was_before() -> None:
    offset = ClockOffset()
    offset.learn(exchange(5 * S, 10, 10))
    offset.learn(exchange(6 * S, 1000, 3000))
    found = offset.ahead_ns
    assert found is not None
    assert abs(found - 6 * S) <= 2001
