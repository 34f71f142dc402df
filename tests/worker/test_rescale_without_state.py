"""Keys without state, and values of replicas, change hands at an epoch mark: what a worker does then."""

import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import penstock
from penstock import state
from penstock.epochs.marks import begin_marks
from penstock.epochs.migration import Asked
from penstock.epochs.reports import Marked
from penstock.epochs.storage import LocalStorage
from penstock.flow import Flow
from penstock.wire import frames as wire
from penstock.wire.keys import key_group, owner
from penstock.wire.orders import Rescale, Switches
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import LoneWorker, lone_worker

if TYPE_CHECKING:
    from penstock.wire.ids import ItemId

SENT = 0.05
"""Longer than a worker takes for what it can do at once."""
FOUR = penstock.elastic(1, 4, initial=1, pool=4)


def ignore(item: object) -> None:
    """A sink."""


def same(item: int) -> int:
    return item


def all_same(items: list[int]) -> list[int]:
    return items


class ById:
    """A sink that wants to have equal ids in one place."""

    by_id = True

    def write(self, item: int) -> None:
        """Nothing."""


def rescaled(worker: LoneWorker, task: str, epoch: int, before: int, after: int) -> Switches:
    """The switches that a mark brings."""
    return msgspec.structs.replace(
        worker.switches,
        version=worker.switches.version + 1,
        active=worker.switches.active | {task: max(before, after)},
        rescales={task: Rescale(epoch, before, after)},
        marked=[],
    )


def mapped(flow: Flow) -> None:
    flow.source(Partitioned(1), name="s").by_key(same).map(same, name="work", parallelism=FOUR).sink(ignore)


def in_lists(flow: Flow) -> None:
    keyed = flow.source(Partitioned(1), name="s").by_key(same)
    keyed.map_batches(all_same, name="work", parallelism=FOUR).sink(ignore)


async def asked(item: int) -> int:
    return item


def awaited(flow: Flow) -> None:
    flow.source(Partitioned(1), name="s").by_key(same).map(asked, name="work", parallelism=FOUR).sink(ignore)


@pytest.mark.parametrize("declare", [mapped, in_lists, awaited])
def test_keys_without_state_wait_for_the_commit_as_well(
    tmp_path: Path, declare: Callable[[Flow], None]
) -> None:
    flow = Flow("moving")
    declare(flow)
    log, place = begin_marks(LocalStorage(tmp_path), str(tmp_path), -1, {}, Asked(()))
    owners = {key: (owner(key_group(key), 4), owner(key_group(key), 2)) for key in range(200)}
    stay = [key for key, of in owners.items() if of == (0, 0)]
    come = [key for key, of in owners.items() if of == (1, 0)]
    with lone_worker(flow, state=place) as worker:
        active = worker.switches.active | {"work": 4}
        worker.switches = msgspec.structs.replace(worker.switches, active=active)
        worker.start("work")
        worker.give(1, stay[:1])
        worker.mark(1, sequence=2, switches=rescaled(worker, "work", 1, 4, 2))
        worker.until(wire.MARKED)
        assert worker.marked[0][2] == Marked(), "there is nothing to tell"
        worker.give(3, [come[0], stay[0], come[1]])
        worker.give(4, [stay[1], come[0]])
        time.sleep(SENT)
        worker.drain()
        assert worker.items() == [stay[0], stay[0], stay[1]], "what stays goes on"
        log.append(msgspec.structs.replace(log.entry, epoch=1))
        worker.mark(2, sequence=5)
        worker.until(wire.MARKED)
        assert worker.items()[3:] == [come[0], come[1], come[0]], "in its order"
        worker.end()
        assert worker.marked[1][0] == 5, "all is acknowledged"


def test_items_by_id_are_known_by_the_id_that_their_sender_went_by(tmp_path: Path) -> None:
    flow = Flow("moving", ids=True)
    flow.source(Partitioned(1), name="s").sink(ById, name="work", parallelism=FOUR)
    log, place = begin_marks(LocalStorage(tmp_path), str(tmp_path), -1, {}, Asked(()))
    parents = [(7, number) for number in range(100) if owner(key_group((7, number)), 4) == 3]
    ids: list[ItemId | None] = [(*parent, 5) for parent in parents]
    with lone_worker(flow, state=place) as worker:
        worker.switches = msgspec.structs.replace(
            worker.switches, active=worker.switches.active | {"work": 1}, measure_every_s=0.01
        )
        worker.start("work", 3)
        worker.mark(1, sequence=1, switches=rescaled(worker, "work", 1, 1, 4))
        worker.until(wire.MARKED)
        worker.give(2, [*range(len(ids))], ids=ids)
        worker.mark(2, sequence=3)
        time.sleep(SENT)
        worker.drain()
        assert len(worker.marked) == 1, "all of them wait, and so does the mark"
        log.append(msgspec.structs.replace(log.entry, epoch=1))
        worker.until(wire.MARKED)
        assert worker.end()["worker"]["items_in"] == len(ids)


class Taken:
    """Sums of what a replica has taken; all of them together are the sum of all items."""

    seen = state.value(0)
    total = state.per_replica(0, merge=operator.add)

    def process(self, item: int, out: penstock.Out[tuple[int, int, int]]) -> None:
        self.seen += 1
        self.total += item
        out((item, self.seen, self.total))


class Totals:
    """The same without keys."""

    total = state.per_replica(0, merge=operator.add)

    def process(self, item: int, out: penstock.Out[tuple[int, int, int]]) -> None:
        self.total += item
        out((item, 0, self.total))


@pytest.mark.parametrize("body", [Taken, Totals])
def test_all_items_wait_where_values_of_replicas_are_put_together(tmp_path: Path, body: Any) -> None:
    flow = Flow("moving")
    source = flow.source(Partitioned(1), name="s")
    stream: Any = source.by_key(same) if body is Taken else source
    stream.task(body, name="work", parallelism=FOUR).sink(ignore)
    storage = LocalStorage(tmp_path)
    log, place = begin_marks(storage, str(tmp_path), -1, {}, Asked(("work",)))
    one, other = (next(k for k in range(1, 99) if owner(key_group(k), 2) == r) for r in (0, 1))
    said: list[Marked] = []
    for replica, key in enumerate((one, other)):
        with lone_worker(flow, state=place) as worker:
            active = worker.switches.active | {"work": 2}
            worker.switches = msgspec.structs.replace(worker.switches, active=active)
            worker.start("work", replica)
            worker.give(1, [key, key])
            worker.mark(1, sequence=2, switches=rescaled(worker, "work", 1, 2, 1))
            worker.until(wire.MARKED)
            said.append(worker.marked[0][2])
            if replica == 1:
                assert worker.end(last=True)["marked"] == {}, "all it knew is told"
    files = [file for one_said in said for file in one_said.files]
    assert [one_said.replicas for one_said in said] == [2, 2]
    with lone_worker(flow, state=place) as worker:
        active = worker.switches.active | {"work": 2}
        worker.switches = rescaled(worker, "work", 1, 2, 1)
        worker.start("work", 0, epoch=1)
        worker.give(1, [one])
        time.sleep(SENT)
        worker.drain()
        assert worker.items() == [], "though its key has always been here"
        log.append(msgspec.structs.replace(log.entry, epoch=1, files=tuple(files), pools={"work": 2}))
        worker.mark(2, sequence=2)
        worker.until(wire.MARKED)
        (item,) = worker.items()
        assert item == (one, 3 if body is Taken else 0, 3 * one + 2 * other), "nothing is missing"
        assert worker.marked[0][2].replicas == 1
        assert [file.kind for file in worker.marked[0][2].files] == ["base"]
        worker.end()
