"""State that comes back: a worker, or an executor, of a flow with 200,000 keys is killed under load.

Executors are processes of their own in a `local-cluster`, which a process of its own has: this module, run as
one, is asked for turns by lines of its standard input.
"""

import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

import penstock
from penstock import processes
from penstock.bench import state_flow
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, median
from penstock.bench.own_session import ANSWER, OwnSession, SessionEndedError
from penstock.bench.state_count import SLOTS
from penstock.bench.state_rescale import KEYS
from penstock.bench.telling import tell, turns
from penstock.faults import checker
from penstock.faults.standalone import await_slots
from penstock.faults.victims import executors, kill, wait_until
from penstock.spark.job import Job
from penstock.testing import Ledger
from penstock.testing.arrivals import arrivals

WORKER, EXECUTOR = "worker", "executor"
BACK_WITHIN_S: Final = {WORKER: 10.0, EXECUTOR: 20.0}
REPLAYED_S: Final = 2.0
REPLICAS: Final = 2
CLUSTER: Final = f"local-cluster[2,{SLOTS},1024]"
_HELD_S: Final = 3.0
"""For how long the bound is to hold again."""
_PATIENCE_S: Final = 60.0
_TURN_S: Final = 400.0
_LOOK_S: Final = 0.5


class Length(msgspec.Struct, frozen=True):
    """How many turns, and how long the flow runs before the kill."""

    turns: int
    pause_s: float


LENGTHS: Final = {Effort.QUICK: Length(1, 2.0), Effort.FULL: Length(3, 6.0)}


class Came(msgspec.Struct, frozen=True):
    """What came of a kill. `refused` says why such a flow cannot run there."""

    back_s: float | None = None
    """From the kill until items were within the bound again, for good."""
    replayed_s: float | None = None
    """Items that reached the sink twice, in seconds of the load."""
    restarts: int = 0
    lost: int = 0
    counted_wrong: int = 0
    refused: str | None = None


def recovery(effort: Effort) -> tuple[dict[str, Any], list[Check]]:
    """A worker and an executor in turn."""
    length = LENGTHS[effort]
    bench_session(SLOTS)
    taken: dict[str, list[Came]] = {WORKER: [], EXECUTOR: []}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as place:
        command = [sys.executable, "-P", "-m", __name__]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": place,
        }
        with OwnSession(command, environment=environment, directory=Path(place)) as cluster:
            for _ in turns(length.turns):
                tell("  recovery, a worker is killed")
                taken[WORKER].append(killed(WORKER, length))
                tell("  recovery, an executor is killed")
                taken[EXECUTOR].append(_asked(cluster, length))
                if taken[EXECUTOR][-1].refused is not None:
                    break  # it would be the next time, too
    return summarise(taken)


def _asked(cluster: OwnSession, length: Length) -> Came:
    try:
        return msgspec.json.decode(cluster.ask(msgspec.json.encode(length).decode(), _TURN_S).text, type=Came)
    except SessionEndedError as problem:
        return Came(refused=str(problem).strip().splitlines()[-1][:300])


def killed(victim: str, length: Length) -> Came:
    """A turn on the Spark that is there."""
    with Ledger() as ledger, tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        place = Path(directory)
        flow = state_flow.flow(ledger, KEYS, place, REPLICAS, elastic=False)
        try:
            job = state_flow.started(flow, place)
        except penstock.FlowError as problem:
            return Came(refused=str(problem))
        state_flow.await_filled(job, KEYS)
        time.sleep(length.pause_s)
        struck_ns = time.monotonic_ns()
        kill(_chosen(job, victim))
        _await_back(job, ledger, struck_ns)
        job.stop()
        entries = arrivals(ledger)
        return Came(
            back_s=checker.recovered_s(entries, struck_ns),
            replayed_s=entries.duplicated() / state_flow.RATE_PER_S,
            restarts=job.metrics().restarts,
            lost=entries.lost(),
            counted_wrong=state_flow.counted_wrong(job, entries, KEYS),
        )


def _chosen(job: Job, victim: str) -> int:
    """A worker that has state, or the executor of one."""
    wait_until(lambda: job.metrics().tasks["count"].processes, "the workers of the count report")
    worker = job.metrics().tasks["count"].processes[0]
    if victim == WORKER:
        return worker
    return next(pid for pid in executors() if worker in processes.tree(pid))


def _await_back(job: Job, ledger: Ledger, struck_ns: int) -> None:
    """Until the bound has held for some time again, or it took too long."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s and not job.await_end(_LOOK_S):
        entries = arrivals(ledger)
        back_s = checker.recovered_s(entries, struck_ns)
        if back_s is not None and checker.remaining_s(entries, struck_ns) >= back_s + _HELD_S:
            return


def summarise(taken: Mapping[str, list[Came]]) -> tuple[dict[str, Any], list[Check]]:
    """The median of the turns; a kill that could not be tried is told, and its checks fail."""
    figures: dict[str, Any] = {"keys": KEYS, "bound_ms": checker.BOUND_MS}
    checks = []
    for victim, came in taken.items():
        tried = [one for one in came if one.refused is None]
        refused = [one.refused for one in came if one.refused is not None]
        figures[victim] = [msgspec.to_builtins(one) for one in tried]
        if refused:
            figures[f"{victim}_refused"] = refused[0]
        back = [one.back_s for one in tried]
        again = [one.replayed_s for one in tried if one.replayed_s is not None]
        known = [value for value in back if value is not None]
        all_back = median(known) if len(known) == len(back) else None
        checks += [
            Check(f"bound back after a killed {victim}, s", all_back, "<=", BACK_WITHIN_S[victim]),
            Check(f"replayed after a killed {victim}, s", max(again, default=None), "<=", REPLAYED_S),
            Check(f"items lost with a {victim}", _sum(tried, "lost"), "==", 0),
            Check(f"counted wrong after a killed {victim}", _sum(tried, "counted_wrong"), "==", 0),
        ]
    return figures, checks


def _sum(tried: list[Came], part: str) -> int | None:
    return sum(getattr(one, part) for one in tried) if tried else None


def main() -> None:
    """Answer until nobody asks; executors that were killed are there again."""
    for line in sys.stdin:
        await_slots(penstock.session(2 * SLOTS, CLUSTER, least=0), 2 * SLOTS)
        came = killed(EXECUTOR, msgspec.json.decode(line, type=Length))
        print(ANSWER + msgspec.json.encode(came).decode(), flush=True)


if __name__ == "__main__":
    main()
