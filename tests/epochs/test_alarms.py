"""Times that are put off, brought forward and cancelled."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.epochs.alarms import Alarms

steps = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 20), st.integers(0, 4)), max_size=40)


@given(steps)
def test_every_key_is_due_once_at_its_last_time(taken: list[tuple[int, int | None, int]]) -> None:
    alarms, times, now = Alarms(), dict[object, int](), 0
    for key, at, passed in [*taken, (0, None, 100)]:
        times.pop(key, None)
        if at is not None:
            times[key] = now + at
            alarms.set(key, now + at)
        now += passed
        assert alarms.next is None or not times or alarms.next <= min(times.values())
        found = [*alarms.due(now, times.get)]
        assert sorted(map(str, found)) == sorted(str(key) for key, time in times.items() if time <= now)
        for fired in found:
            del times[fired]
    assert not times


def test_a_time_that_is_put_off_again_and_again_has_one_place() -> None:
    alarms = Alarms()
    for at in range(1000):
        alarms.set("key", at)
    assert len(alarms._queue) == 1
    assert [*alarms.due(5, lambda _: 999)] == []
    assert alarms.next == 999
