"""Loads of key groups on their way from the reports of senders to a snapshot."""

from typing import Any

import msgspec

import penstock as ps
from penstock import Out, state
from penstock.flow.layers import lay_out
from penstock.observe.key_groups import SHOWN
from penstock.observe.reported import Reported
from penstock.observe.view import View
from penstock.stats.key_load import SLICE
from penstock.stats.snapshot import KeyGroupStats, KeySpanStats, decode_snapshot, encode_snapshot
from penstock.wire.divisions import spans_of
from penstock.wire.keys import KEY_GROUPS
from penstock.wire.orders import Switches
from penstock.wire.routes import routes
from tests.observe.test_view import report


class Counts:
    seen = state.value(0)

    def process(self, item: int, out: Out[int]) -> None:
        out(item)


def view_of(reported: Reported, *, divisible: bool, **changes: Any) -> View:
    flow = ps.Flow("counted")
    numbers = flow.source(ps.paced(lambda partition, index, seed: index, 10), name="numbers")
    counts = numbers.by_key(abs).task(Counts, name="counts", parallelism=2)
    counts.sink(print, name="out")
    placed = lay_out(flow.graph())
    made = Switches(
        routes=routes(placed),
        active={"numbers": 1, "counts": 2, "out": 1},
        lifetime_ms={stream.name: 0.0 for stream in placed.graph.streams},
        sampling=0.1,
    )
    switches = msgspec.structs.replace(made, **changes)
    able = ["counts"] if divisible else []
    return View(reported, lambda: (placed, switches), None, divisible=lambda *_: able)


def said(task: str, items: int, **interval: Any) -> bytes:
    """A report with more in its interval."""
    (one,) = msgspec.json.decode(report(task, items))
    one["said"]["interval"] |= interval
    return msgspec.json.encode([one])


def sent(**counts: int) -> dict[str, Any]:
    """Items of groups that are called g0, g1 and so on."""
    slices = [0] * (KEY_GROUPS // SLICE)
    for name, count in counts.items():
        slices[int(name[1:]) // SLICE] += count
    return {
        "numbers->counts": {"groups": {name[1:]: count for name, count in counts.items()}, "slices": slices}
    }


MOMENTS = {"count": 10, "center": 2.0, "squares": 0.0}


def test_the_heaviest_groups_and_who_owns_them() -> None:
    reported = Reported()
    view = view_of(reported, divisible=True)
    reported.add(said("numbers", 100, keyed=sent(g5=60, g4000=10)))
    reported.add(said("numbers", 100, keyed=sent(g5=20, g7=10)))
    times = {"5": [10, 30.0], "7": [2, 500.0]}
    reported.add(said("counts", 100, service_ms=MOMENTS, group_times=times, queue_wait_ms=MOMENTS))
    snapshot = view.snapshot(1.0)
    counts = snapshot.tasks["counts"]
    # 3 ms an item of group 5, of which enough were timed; 5 ms (0.5 s for 100 items) of the others.
    assert counts.key_groups == [
        KeyGroupStats(group=5, processed=80, useful_s=0.24),
        KeyGroupStats(group=7, processed=10, useful_s=0.05),
        KeyGroupStats(group=4000, processed=10, useful_s=0.05),
    ]
    assert counts.key_table == [
        KeySpanStats(first=0, last=2047, replica=0, processed=90),
        KeySpanStats(first=2048, last=4095, replica=1, processed=10),
    ]
    assert counts.queue_wait_max_ms == 2.0
    assert snapshot.tasks["out"].key_groups is None
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    assert view.snapshot(1.0).tasks["counts"].key_groups is None, "nothing was sent since"


def test_a_table_in_use_is_the_one_that_is_told() -> None:
    reported = Reported()
    table = spans_of([1 if group == 5 else 0 for group in range(KEY_GROUPS)])
    view = view_of(reported, divisible=True, tables={"counts": table})
    reported.add(said("numbers", 100, keyed=sent(g5=60, g4000=10)))
    found = view.snapshot(1.0).tasks["counts"].key_table
    assert [(span.replica, span.processed) for span in found or []] == [(0, 0), (1, 60), (0, 10)]


def test_of_tasks_whose_keys_stay_only_the_load_is_told_and_not_of_too_many_groups() -> None:
    reported = Reported()
    view = view_of(reported, divisible=False)
    reported.add(said("numbers", 100, keyed=sent(**{f"g{group}": 1 + group for group in range(60)})))
    counts = view.snapshot(1.0).tasks["counts"]
    assert counts.key_table is None
    assert [group.group for group in counts.key_groups or []] == [*range(59, 59 - SHOWN, -1)]
