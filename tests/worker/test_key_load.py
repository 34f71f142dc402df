"""What a worker tells of the groups of keys: how many items it sent to each, and how long some took."""

import time

from penstock.flow import Flow
from penstock.stats.key_load import HEAVIEST
from penstock.wire.divisions import Division
from penstock.wire.envelope import Tag
from penstock.wire.keys import KEY_GROUPS, key_group
from penstock.worker.by_key import ByKey
from penstock.worker.group_times import GroupTimes
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import lone_worker


def key_of(item: int) -> int:
    if item < 0:
        raise ValueError("no key")
    return item % 10


def same(item: int) -> int:
    return item


def flow_by_key() -> Flow:
    flow = Flow("by_key")
    source = flow.source(Partitioned(1), name="source").map(same, name="before")
    source.by_key(key_of).map(same, name="work", parallelism=2).sink(print, name="sink")
    return flow


def test_a_sender_tells_what_it_sent_by_key_since_its_last_report() -> None:
    with lone_worker(flow_by_key()) as worker:
        worker.start("before")
        worker.give(1, [7] * 5 + [8])
        report = worker.end()
    told = [one["interval"]["keyed"] for one in [*worker.reports, report] if one["interval"]["keyed"]]
    (load,) = [one["before->work"] for one in told]
    assert load["groups"] == {str(key_group(7)): 5, str(key_group(8)): 1}
    assert sum(load["slices"]) == 6


def test_a_receiver_tells_how_long_timed_items_took_by_group() -> None:
    with lone_worker(flow_by_key()) as worker:
        worker.start("work")
        now_ns = time.monotonic_ns()
        worker.give(1, [7, 8, 9], stream=1, tags=[Tag(0, now_ns, now_ns), Tag(2, now_ns, now_ns)])
        report = worker.end()
    told = [one["interval"]["group_times"] for one in [*worker.reports, report]]
    times = {group: took for one in told for group, took in one.items()}
    assert {group: items for group, (items, _) in times.items()} == {
        str(key_group(7)): 1,
        str(key_group(9)): 1,
    }


def test_items_whose_key_raises_or_that_came_without_one_are_left_out() -> None:
    times = GroupTimes(flow_by_key().graph().streams)
    times.took(1, -1, 5_000_000)
    times.took(0, 7, 5_000_000)
    times.took(1, 7, 5_000_000)
    times.took(1, 17, 1_000_000)
    assert {group: (one.items, one.took_ms) for group, one in times.take().items()} == {
        key_group(7): (2, 6.0)
    }
    assert times.take() == {}


def test_only_the_heaviest_groups_are_told_by_themselves() -> None:
    by_key: ByKey[str] = ByKey()
    assert by_key.take().total == 0, "before it has receivers"
    by_key.divide(["a", "b"], Division(2))
    assert [by_key.channels[group] for group in (0, 2047, 2048, 4095)] == ["a", "a", "b", "b"]
    for group in range(KEY_GROUPS):
        by_key.counts[group] = group % 100
    load = by_key.take()
    assert len(load.groups) == HEAVIEST
    assert min(load.groups.values()) >= 98
    assert load.total == sum(group % 100 for group in range(KEY_GROUPS))
