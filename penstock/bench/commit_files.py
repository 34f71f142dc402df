"""What a commit of state costs a replica, without Spark: time and bytes by the number of changed keys."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import penstock
from penstock.bench.harness import Check, Effort, median, ratio
from penstock.bench.keyed import KEYS, Declared, drop, itself, made
from penstock.epochs.boundary import begin, epoch_of
from penstock.epochs.migration import Asked
from penstock.epochs.storage import LocalStorage
from penstock.wire.divisions import Division
from penstock.worker.context import Context
from penstock.worker.outbox import Outbox
from penstock.worker.state_keeper import StateKeeper
from penstock.worker.state_store import store_of

CHANGED: Final = (0, 100, 1_000, 10_000, KEYS)
LARGE, SMALL = 10_000, 100
"""The cost follows what has changed: bytes of these two are compared."""


@dataclass(frozen=True, slots=True)
class Committed:
    """One commit, and the files that it made."""

    changed: int
    seconds: float
    bytes: int


def files(effort: Effort) -> tuple[dict[str, Any], list[Check]]:
    """On the disk that has temporary files, which is told to write through, as in a flow."""
    turns = 1 if effort is Effort.QUICK else 3
    found: list[Committed] = []
    for _ in range(turns):
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
            found += commits(Path(place))
    return summarise(found)


def commits(root: Path) -> list[Committed]:
    """Of one replica with all keys: first a base, then files of changes."""
    flow = penstock.Flow("commit")
    keyed = flow.source(penstock.paced(made, 1.0), name="items").by_key(itself)
    keyed.task(Declared, name="count").sink(drop, name="drop")
    graph = flow.graph()
    context = Context("commit", "count", 0, Outbox(lambda _: None, 0, with_ids=False))
    context.input = "items->count"
    store = store_of(graph, graph.task("count"), context, time.monotonic_ns, ahead_ns=0)
    assert store is not None, "the task declares state"
    work = store.bind(Declared())
    keeper = StateKeeper(
        begin(LocalStorage(root), str(root), -1, Asked(("count",))), store, "count", 0, Division(1)
    )
    keeper.restore(0)
    found = []
    for batch, changed in enumerate((KEYS, *CHANGED)):
        for index in range(changed):
            work.process(made(0, index, 0), drop)
        before = _bytes(root)
        began_s = time.perf_counter()
        keeper.commit(epoch_of(batch))
        found.append(Committed(changed, time.perf_counter() - began_s, _bytes(root) - before))
    return found[1:]  # the first is a base


def summarise(found: list[Committed]) -> tuple[dict[str, Any], list[Check]]:
    """By the number of keys that have changed."""
    milliseconds: dict[str, float | None] = {}
    sizes: dict[str, float | None] = {}
    for changed in CHANGED:
        of_it = [one for one in found if one.changed == changed]
        milliseconds[f"{changed}_changed"] = median([one.seconds * 1000 for one in of_it])
        sizes[f"{changed}_changed"] = median([float(one.bytes) for one in of_it])
    figures: dict[str, Any] = {"keys": KEYS, "commit_ms": milliseconds, "commit_bytes": sizes}
    grown = ratio(sizes[f"{LARGE}_changed"], sizes[f"{SMALL}_changed"])
    all_of_it = ratio(sizes[f"{LARGE}_changed"], sizes[f"{KEYS}_changed"])
    checks = [
        Check(f"bytes, {LARGE:,} / {SMALL:,} changed", grown, "<=", 1.5 * LARGE / SMALL),
        Check(f"bytes, {LARGE:,} / {KEYS:,} changed", all_of_it, "<=", 1.5 * LARGE / KEYS),
    ]
    return figures, checks


def _bytes(root: Path) -> int:
    return sum(file.stat().st_size for file in (root / "state").glob("*"))
