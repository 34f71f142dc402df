"""The paced source: what is due is delivered once, in order, with its due time, however late."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.io.paced import Paced, PacedReader, paced
from penstock.io.protocol import SourceClock
from penstock.io.schedule import NS_PER_S, Schedule, constant, steps


@dataclass
class FakeTime:
    """A clock that only moves when someone sleeps."""

    now_ns: int = 1_000 * NS_PER_S

    def read(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * NS_PER_S)


START_NS = 1_000 * NS_PER_S


def reader(source: Paced[Any], time: FakeTime, partition: int = 0, offset: int = 0) -> PacedReader[Any]:
    clock = SourceClock(START_NS, offset, time.read, time.sleep)
    return PacedReader(source, partition, offset, clock)


def identity(partition: int, index: int, seed: int) -> tuple[int, int, int]:
    return partition, index, seed


def drain(chosen: PacedReader[Any], limit: int, wait_s: float = 0.1) -> tuple[list[object], list[int]]:
    items: list[object] = []
    due: list[int] = []
    while (got := chosen.read(limit, wait_s)) is not None:
        items += got[0]
        due += got[1] or []
    return items, due


def test_nothing_before_its_time() -> None:
    time = FakeTime()
    chosen = reader(paced(identity, 10, seed=7), time)
    assert chosen.read(100, 0.05) == ([(0, 0, 7)], [START_NS])
    assert chosen.read(100, 0.05) == ([], None)
    assert time.now_ns == START_NS + 50_000_000
    assert chosen.read(100, 1.0) == ([(0, 1, 7)], [START_NS + 100_000_000])
    assert time.now_ns == START_NS + 100_000_000, "waits no longer than until the next item is due"


def test_a_late_reader_catches_up_with_the_old_due_times() -> None:
    time = FakeTime(START_NS + NS_PER_S)
    chosen = reader(paced(identity, 100), time)
    items, due = chosen.read(1000, 0.0) or ([], None)
    assert [index for _, index, _ in items] == list(range(101))
    assert due == [START_NS + n * 10_000_000 for n in range(101)]


def test_limit_is_respected_and_offset_counts() -> None:
    chosen = reader(paced(identity, 100), FakeTime(START_NS + NS_PER_S))
    assert len((chosen.read(30, 0.0) or ([], None))[0]) == 30
    assert chosen.offset == 30
    assert (chosen.read(1, 0.0) or ([], None))[0] == [(0, 30, 0)]


@given(
    rate=st.floats(1, 5000),
    partitions=st.integers(1, 5),
    count=st.integers(0, 200),
    limit=st.integers(1, 64),
)
def test_partitions_share_the_schedule_exactly(rate: float, partitions: int, count: int, limit: int) -> None:
    source = paced(identity, rate, partitions=partitions, count=count)
    everything: list[tuple[int, object]] = []
    for partition in range(partitions):
        items, due = drain(reader(source, FakeTime(), partition), limit)
        assert items == [(partition, index, 0) for index in range(len(items))]
        everything += zip(due, items, strict=True)
    expected = [START_NS + at for at in constant(rate).due_ns(0, 1, count)]
    assert sorted(at for at, _ in everything) == expected


@given(
    segments=st.lists(st.tuples(st.floats(0.1, 2), st.floats(1, 100)), min_size=1, max_size=4),
    partitions=st.integers(1, 3),
    data=st.data(),
)
def test_resuming_continues_schedule_and_items(
    segments: list[tuple[float, float]], partitions: int, data: st.DataObject
) -> None:
    source = paced(identity, steps(segments), partitions=partitions)
    whole, due = drain(reader(source, FakeTime()), 50)
    cut = data.draw(st.integers(0, max(0, len(whole) - 1)))
    if not whole:
        return
    rest, rest_due = drain(reader(source, FakeTime(), offset=cut), 50)
    assert rest == whole[cut:]
    shift = due[cut] - rest_due[0]
    assert [at + shift for at in rest_due] == pytest.approx(due[cut:], abs=2)


def test_make_is_given_the_due_time_if_it_asks() -> None:
    def make(partition: int, index: int, seed: int, due_ns: int) -> int:
        return due_ns

    chosen = reader(paced(make, 10, count=3), FakeTime())
    items, due = drain(chosen, 10)
    assert items == due


def test_ends_by_count_seconds_or_schedule() -> None:
    assert paced(identity, 10, count=25).total == 25
    assert paced(identity, 10, seconds="2 s").total == 20
    assert paced(identity, steps([(3, 10)])).total == 30
    assert paced(identity, steps([(3, 10)]), count=50, seconds=1).total == 10
    assert paced(identity, 10).total is None


@given(st.floats(0.5, 2000), st.floats(0.01, 20))
def test_seconds_cuts_exactly_the_items_due_before(rate: float, limit_s: float) -> None:
    total = paced(identity, rate, seconds=limit_s).total
    assert total is not None
    schedule: Schedule = constant(rate)
    assert schedule.due_s(total) >= limit_s * (1 - 1e-12)
    assert total == 0 or schedule.due_s(total - 1) < limit_s * (1 + 1e-12)


def test_reopening_after_the_end_is_exhausted() -> None:
    source = paced(identity, steps([(1, 10)]))
    assert reader(source, FakeTime(), offset=10).read(10, 0.0) is None


def test_a_split_is_a_partition_of_so_many() -> None:
    """So that a checkpoint of three is not taken for one of two."""
    source = paced(identity, 10, partitions=3, count=7)
    assert source.splits == ("0/3", "1/3", "2/3")
    assert not {*source.splits} & {*paced(identity, 10, partitions=2).splits}
    assert [source.start(split) for split in source.splits] == [0, 0, 0]
    opened = [source.open(split, 1, SourceClock(START_NS, 0)) for split in source.splits]
    assert [(one.partition, one.offset) for one in opened] == [(0, 1), (1, 1), (2, 1)]
    assert [source.count(one.partition) for one in opened] == [3, 2, 2]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="a paced source needs at least 1 partition, not 0"):
        paced(identity, 1, partitions=0)
    with pytest.raises(ValueError, match="count of a paced source must be 0 or more, not -1"):
        paced(identity, 1, count=-1)
