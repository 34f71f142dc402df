"""A running flow as somebody sees it who looks from time to time."""

from typing import Any

import msgspec

import penstock as ps
from penstock.flow.layers import Layout, lay_out
from penstock.observe.reported import Reported
from penstock.observe.view import View
from penstock.stats.sketch import Sketch
from penstock.stats.snapshot import ExecutorStats
from penstock.wire.orders import Switches
from penstock.wire.routes import routes


def layout() -> Layout:
    flow = ps.Flow("sums")
    numbers = flow.source(ps.paced(lambda partition, index, seed: index, 10), name="numbers")
    numbers.map(abs, name="work", parallelism=ps.elastic(1, 8, pool=5)).forward().sink(
        print, name="out", parallelism=ps.elastic(1, 8, pool=5)
    )
    return lay_out(flow.graph())


def switches(placed: Layout, **changes: Any) -> Switches:
    made = Switches(
        routes=routes(placed),
        active={"numbers": 1, "work": 2, "out": 2},
        lifetime_ms={"numbers->work": 5.0, "work->out": 0.0},
        sampling=0.1,
    )
    return msgspec.structs.replace(made, **changes)


def report(task: str, items: int, **totals: Any) -> bytes:
    """Of a replica that processed so many items in the last second."""
    counts = {"items_in": 0, "items_out": 0, "envelopes_out": 0, "skipped": 0, "dead_lettered": 0, **totals}
    worker = {"task": task, "replica": 0, "pid": len(task), "latency_ms": Sketch().to_json(), **counts}
    rates = {"useful_s": 0.5, "window_s": 1.0, "processed": items, "emitted": items}
    said = {"worker": worker, "interval": {"task": task, "replica": 0, "rates": rates}, "channels": []}
    return msgspec.json.encode([{"executor": "e1", "said": said}])


def processed(view: View) -> float | None:
    return view.snapshot(1.0).tasks["work"].processed_total


def test_everybody_sees_what_came_since_they_looked() -> None:
    placed, reported = layout(), Reported()
    often, seldom = (View(reported, lambda: (placed, switches(placed)), None) for _ in range(2))
    reported.add(report("work", 100))
    assert processed(often) == 100
    reported.add(report("work", 30))
    assert processed(often) == 30
    assert processed(often) is None
    assert processed(seldom) == 130


def test_it_shows_the_switches_and_the_layout_of_now() -> None:
    placed = layout()
    present = [(placed, switches(placed))]
    view = View(Reported(), lambda: present[-1], None)
    before = view.snapshot(1.0)
    resized = placed.with_pools({"work": 7})
    present.append(
        (
            resized,
            switches(
                resized,
                active={"numbers": 1, "work": 3, "out": 3},
                lifetime_ms={"numbers->work": 1.0, "work->out": 0.0},
                chains=[["work", "out"]],
            ),
        )
    )
    after = view.snapshot(1.0)
    seen = [
        (
            shot.tasks["work"].parallelism,
            shot.tasks["work"].pool,
            shot.stream("numbers->work").batch_lifetime_ms,
        )
        for shot in (before, after)
    ]
    assert seen == [(2, 5, 5.0), (3, 7, 1.0)]
    assert [["work", "out"] in shot.chains for shot in (before, after)] == [False, True]


def test_what_waits_between_tasks_is_told() -> None:
    placed, reported = layout(), Reported()
    view = View(reported, lambda: (placed, switches(placed)), None)
    reported.add(report("numbers", 10, sent={"numbers->work": 10}))
    reported.add(report("work", 4, items_in=4))
    assert view.snapshot(1.0).tasks["work"].backlog_total == 6


def test_cores_are_told_where_all_is_on_this_machine() -> None:
    placed = layout()
    busy_s = iter([10.0, 10.5])
    local = View(Reported(), lambda: (placed, switches(placed)), lambda: next(busy_s))
    elsewhere = View(Reported(), lambda: (placed, switches(placed)), None)
    assert (local.snapshot(1.0).cores_used or 0.0) > 0
    assert elsewhere.snapshot(1.0).cores_used is None


def test_cores_are_told_by_executor_as_its_workers_use_them() -> None:
    placed, reported = layout(), Reported()
    view = View(reported, lambda: (placed, switches(placed)), None)
    for executor, task, cpu_s in (("e1", "work", 0.25), ("e1", "numbers", 0.5), ("e2", "out", None)):
        (said,) = msgspec.json.decode(report(task, 10))
        said["executor"] = executor
        said["said"]["interval"]["cpu_s"] = cpu_s
        reported.add(msgspec.json.encode([said]))
    assert view.snapshot(1.0).executors == {"e1": ExecutorStats(cores_used=0.75)}
    assert view.snapshot(1.0).executors is None


def footprint(executor: str, java_s: float, over_s: float, **more: int) -> bytes:
    told = {"cores": 4, "java_s": java_s, "over_s": over_s, **more}
    return msgspec.json.encode([{"executor": executor, "said": {"footprint": told}}])


def test_what_an_executor_takes_and_runs_is_told() -> None:
    placed, reported = layout(), Reported()
    view = View(reported, lambda: (placed, switches(placed)), None)
    reported.add(footprint("1", 0.5, 1.0, memory_bytes=100))
    reported.add(footprint("1", 1.0, 3.0, memory_bytes=200))
    reported.add(footprint("10", 0.0, 1.0))
    reported.note_slots(b'{"1": [8, 3], "2": [8, 0]}')
    first = ExecutorStats(cores=4, java_cores_used=0.375, slots=8, slots_used=3, memory_bytes=200)
    idle = ExecutorStats(slots=8, slots_used=0)
    assert view.snapshot(4.0).executors == {
        "1": first,
        "10": ExecutorStats(cores=4, java_cores_used=0.0),
        "2": idle,
    }
    later = view.snapshot(1.0).executors or {}
    assert later["1"].java_cores_used == 1 / 3, "nothing new: what it told last"
    reported.all_gone()
    reported.note_slots(b'{"2": [8, 0]}')
    assert view.snapshot(1.0).executors == {"2": idle}


def test_a_source_is_not_to_have_more_replicas_than_splits() -> None:
    flow = ps.Flow("sums")
    source = ps.paced(lambda partition, index, seed: index, 10, partitions=6)
    flow.source(source, name="numbers", replicas=ps.elastic(2, 6)).sink(print, name="out")
    placed = lay_out(flow.graph())
    present = Switches(routes=routes(placed), active={"numbers": 2, "out": 1}, lifetime_ms={}, sampling=0.1)
    limits = []
    for splits in ({}, {"numbers": 9}, {"numbers": 3}, {"numbers": 1}):
        view = View(Reported(), lambda: (placed, present), None, splits.copy)
        numbers = view.snapshot(1.0).tasks["numbers"]
        assert numbers.elastic
        limits.append(numbers.max)
    assert limits == [6, 6, 3, 2]
