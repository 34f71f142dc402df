"""Sequence-numbered items, and the checks that none is lost, doubled or out of order."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from penstock.io import Paced, paced
from penstock.testing.collector import Collector


class Item(NamedTuple):
    """An item that knows where it came from."""

    partition: int
    index: int  # type: ignore[assignment]  # of a tuple's methods, none of which is used


def make_item(partition: int, index: int, seed: int) -> Item:
    return Item(partition, index)


def numbered(count: int, rate: float = 5000.0, partitions: int = 1) -> Paced[Item]:
    """`count` items over all partitions; item k of all is the (k div partitions)-th of its partition."""
    return paced(make_item, rate=rate, count=count, partitions=partitions)


def expected(count: int, partitions: int = 1) -> set[Item]:
    return {Item(k % partitions, k // partitions) for k in range(count)}


def assert_exactly_once(items: Iterable[Item], count: int, partitions: int = 1) -> None:
    seen = Counter(items)
    wanted = expected(count, partitions)
    lost = wanted - seen.keys()
    foreign = seen.keys() - wanted
    doubled = [item for item, times in seen.items() if times > 1]
    assert (len(lost), len(foreign), len(doubled)) == (0, 0, 0), (sorted(lost)[:5], doubled[:5])


def assert_ordered(items: Sequence[Item]) -> None:
    """Items of one partition that took the same channel come in their order."""
    last: dict[int, int] = {}
    for item in items:
        assert item.index > last.get(item.partition, -1), f"{item} came after {last[item.partition]}"
        last[item.partition] = item.index


def wait_for_items(collector: Collector, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(collector.items()) < count:
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
