"""Marks before a task (Alignment.java): nothing is lost or reordered, and a valid mark is a cut."""

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.wire.envelope import Address, encode

pytestmark = pytest.mark.spark

CHANNELS = (0x00010000, 0x00010001, 0x00020000)
LAST = (1 << 63) - 1
PLENTY = 1 << 20
Item = tuple[int, int]
"""A channel, by its place among all, and the number of the item there."""


def data(channel: int, number: int) -> bytes:
    stream, sender = CHANNELS[channel] >> 16, CHANNELS[channel] & 0xFFFF
    return encode(Address(1, 0, 0), stream, sender, 0, struct.pack("<BI", channel, number), 1, 0)


def mark(channel: int, epoch: int) -> bytes:
    made = bytearray(
        encode(Address(1, 0, 0), CHANNELS[channel] >> 16, CHANNELS[channel] & 0xFFFF, epoch, b"", 0, 0)
    )
    made[3] = 0x20
    return bytes(made)


class Aligned:
    """An alignment, and what it gave: items, and marks as (epoch, valid)."""

    def __init__(self, spark: SparkSession, *, exact: bool, limit: int = PLENTY) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        known = jvm.java.util.ArrayList()
        for channel in CHANNELS:
            known.add(channel)
        self.java = jvm.org.penstock.bridge.Alignment(exact, 0, known, limit)
        self.given: list[Item | tuple[str, int, bool]] = []

    def arrive(self, *envelopes: bytes) -> None:
        all_ = self._jvm.java.util.ArrayList()
        for envelope in envelopes:
            all_.add(bytearray(envelope))
        for step in self.java.arrive(all_, 1):
            if step.epoch() > 0:
                self.given.append(("mark", step.epoch(), step.valid()))
            for envelope in step.envelopes():
                self.given.append(struct.unpack("<BI", bytes(envelope)[-5:]))


def test_what_follows_a_mark_waits_for_the_others(spark: SparkSession) -> None:
    aligned = Aligned(spark, exact=True)
    aligned.arrive(data(0, 0), mark(0, 1), data(0, 1), data(1, 0))
    assert aligned.given == [(0, 0), (1, 0)]
    assert aligned.java.storedBytes() == len(data(0, 1))
    aligned.arrive(mark(1, 1), data(1, 1), data(2, 0), mark(2, 1))
    assert aligned.given[2:] == [(2, 0), ("mark", 1, True), (0, 1), (1, 1)]
    assert aligned.java.storedBytes() == 0


def test_where_no_state_depends_on_it_nothing_waits(spark: SparkSession) -> None:
    aligned = Aligned(spark, exact=False)
    aligned.arrive(mark(0, 1), data(0, 0), mark(1, 1), data(1, 0), data(2, 0), mark(2, 1))
    assert aligned.given == [(0, 0), (1, 0), (2, 0), ("mark", 1, True)]


def test_a_full_store_lets_all_pass_and_the_epoch_is_void(spark: SparkSession) -> None:
    size = len(data(0, 0))
    aligned = Aligned(spark, exact=True, limit=2 * size)
    aligned.arrive(mark(0, 1), data(0, 0), data(0, 1))
    assert aligned.given == []
    aligned.arrive(data(0, 2))
    assert aligned.given == [(0, 0), (0, 1), (0, 2)]
    aligned.arrive(mark(1, 1), data(1, 0), mark(2, 1))
    assert aligned.given[3:] == [(1, 0), ("mark", 1, False)]
    aligned.arrive(mark(0, 2), data(0, 3), mark(1, 2), mark(2, 2))
    assert aligned.given[5:] == [("mark", 2, True), (0, 3)]


def test_where_keys_change_hands_nothing_passes_however_full_it_is(spark: SparkSession) -> None:
    size = len(data(0, 0))
    aligned = Aligned(spark, exact=True, limit=size)
    aligned.java.moves(1, True)
    aligned.arrive(mark(0, 1), data(0, 0))
    assert not aligned.java.takeFull()
    aligned.arrive(data(0, 1))
    assert aligned.java.takeFull()
    aligned.arrive(data(0, 2))
    assert not aligned.java.takeFull(), "it is said once"
    assert aligned.given == []
    aligned.arrive(mark(1, 1), mark(2, 1))
    assert aligned.given == [("mark", 1, True), (0, 0), (0, 1), (0, 2)]
    aligned.arrive(mark(0, 2), data(0, 3), data(0, 4), data(0, 5), mark(1, 2), mark(2, 2))
    assert aligned.given[4:] == [(0, 3), (0, 4), (0, 5), ("mark", 2, False)], "the next may be void again"
    assert not aligned.java.takeFull()


@pytest.mark.parametrize("here", [True, False])
def test_keys_without_state_wait_for_the_mark_with_which_they_change_hands(
    spark: SparkSession, here: bool
) -> None:
    aligned = Aligned(spark, exact=False)
    aligned.java.moves(2, here)
    aligned.arrive(mark(0, 1), data(0, 0), mark(1, 1), mark(2, 1))
    assert aligned.given == [(0, 0), ("mark", 1, True)], "this one only counts"
    aligned.arrive(mark(0, 2), data(0, 1), data(1, 0), mark(1, 2))
    assert aligned.given[2:] == ([(1, 0)] if here else [(0, 1), (1, 0)])
    aligned.arrive(mark(2, 2))
    assert aligned.given[-2:] == ([("mark", 2, True), (0, 1)] if here else [(1, 0), ("mark", 2, True)])


def test_a_channel_that_has_ended_counts_for_all_marks(spark: SparkSession) -> None:
    aligned = Aligned(spark, exact=True)
    aligned.arrive(mark(0, LAST), mark(1, 1), data(1, 0), mark(2, 1), mark(1, 3), mark(2, 3))
    assert aligned.given == [("mark", 1, True), (1, 0), ("mark", 3, True)]
    aligned.arrive(mark(1, LAST), data(2, 0), mark(2, LAST))
    assert aligned.given[3:] == [(2, 0)]


def test_an_unknown_channel_is_refused(spark: SparkSession) -> None:
    aligned = Aligned(spark, exact=True)
    stranger = encode(Address(1, 0, 0), 7, 3, 0, b"", 1, 0)
    with pytest.raises(Exception, match="stream 7, replica 3"):
        aligned.arrive(stranger)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.integers(0, 2), max_size=60),
    st.booleans(),
    st.sampled_from([0, 40, 100, PLENTY]),
)
@example([[0, 0, 0], [0, 0, 0], [3, 0, 0]], [], True, 100)  # a later mark was stored, too, when it was full
@example([[0, 0, 0], [0, 0, 0], [0, 1, 0]], [], True, 0)
def test_whatever_comes_in_whatever_order(
    spark: SparkSession, epochs: list[list[int]], turns: list[int], exact: bool, limit: int
) -> None:
    """`epochs` says how many items each channel has before each mark; `turns` who goes on."""
    aligned = Aligned(spark, exact=exact, limit=limit)
    sent: list[list[bytes]] = [[], [], []]
    epoch_of: dict[Item, int] = {}
    for channel in range(3):
        number = 0
        for epoch, counts in enumerate(epochs, 1):
            for _ in range(counts[channel]):
                epoch_of[channel, number] = epoch
                sent[channel].append(data(channel, number))
                number += 1
            sent[channel].append(mark(channel, epoch))
        sent[channel].append(mark(channel, LAST))
    for turn in [*turns, *(channel for channel in range(3) for _ in sent[channel])]:
        if sent[turn]:
            aligned.arrive(sent[turn].pop(0))
    items = [one for one in aligned.given if one[0] != "mark"]
    marks = [(number, one) for number, one in enumerate(aligned.given) if one[0] == "mark"]
    assert sorted(items) == sorted(epoch_of), "each once"
    for channel in range(3):
        assert [one for one in items if one[0] == channel] == sorted(o for o in epoch_of if o[0] == channel)
    assert [one[1] for _, one in marks] == [*range(1, len(epochs) + 1)]
    for number, (_, epoch, valid) in marks:
        before = {one for one in aligned.given[:number] if one[0] != "mark"}
        assert before >= {item for item, its in epoch_of.items() if its <= epoch}
        if exact and valid:
            assert before == {item for item, its in epoch_of.items() if its <= epoch}, "a cut"
        if limit == PLENTY or not exact:
            assert valid
