"""Replicas activated and deactivated inside a batch: how soon it takes effect, with nothing going wrong."""

import time
from dataclasses import dataclass

import penstock
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result
from penstock.testing import Ledger, stamped
from penstock.testing.arrivals import Entries, arrivals
from penstock.testing.ledger import Stamped
from penstock.worker.context import Context

RATE_PER_S = 2000.0
MANY, FEW = 8, 2
SLOTS = MANY + 2
BAR_MS = 250.0


class Through:
    """Marks every item with the replica it came through."""

    def __init__(self) -> None:
        self.replica = -1

    def open(self, context: Context) -> None:
        self.replica = context.replica

    def process(self, item: Stamped, out: penstock.Out[Stamped]) -> None:
        partition, index, due_ns, _, payload = item
        out((partition, index, due_ns, self.replica, payload))


@dataclass(frozen=True, slots=True)
class Turn:
    """One run: when both switches were turned, and all that arrived."""

    up_ns: int
    down_ns: int
    entries: Entries
    expected: int

    def up_ms(self) -> float | None:
        """From the call until every replica has sent an item; None if one never did before the way down."""
        entries = self.entries
        firsts = []
        for replica in range(MANY):
            came = entries.arrived_ns[(entries.mark == replica) & (entries.arrived_ns >= self.up_ns)]
            if not len(came) or came.min() >= self.down_ns:
                return None
            firsts.append(int(came.min()))
        return (max(firsts) - self.up_ns) * 1e-6

    def down_ms(self) -> float:
        """From the call until the last item through a replica that is no longer active."""
        gone = self.entries.arrived_ns[self.entries.mark >= FEW]
        last_ns = int(gone.max()) if len(gone) else self.down_ns
        return max(0.0, (last_ns - self.down_ns) * 1e-6)


def turn(pause_s: float) -> Turn:
    """1 -> 8 -> 2 active replicas, with a pause before and after each, all inside the first batch."""
    with Ledger() as ledger:
        flow = penstock.Flow("switch")
        items = flow.source(penstock.paced(stamped, RATE_PER_S), name="items")
        pool = penstock.elastic(1, MANY, initial=1, pool=MANY)
        items.task(Through, name="through", parallelism=pool).sink(ledger, name="ledger")
        job = penstock.run(flow)
        time.sleep(2 * pause_s)
        up_ns = time.monotonic_ns()
        job.set_active("through", MANY)
        time.sleep(pause_s)
        down_ns = time.monotonic_ns()
        job.set_active("through", FEW)
        time.sleep(pause_s)
        job.stop()
        return Turn(up_ns, down_ns, arrivals(ledger), job.metrics().tasks["items"].items_in)


def bench(effort: Effort) -> Result:
    """Every turn starts the flow anew, so that replicas have no process before they are activated."""
    turns, pause_s = (2, 3.0) if effort is Effort.QUICK else (5, 6.0)
    bench_session(SLOTS)
    return summarise([turn(pause_s) for _ in range(turns)])


def summarise(turns: list[Turn]) -> Result:
    """The slowest of all turns counts."""
    ups, downs = [one.up_ms() for one in turns], [one.down_ms() for one in turns]
    known = [up for up in ups if up is not None]
    entries = [one.entries for one in turns]
    checks = [
        Check("1 -> 8 takes effect, ms", max(known) if len(known) == len(ups) else None, "<=", BAR_MS),
        Check("8 -> 2 takes effect, ms", max(downs, default=None), "<=", BAR_MS),
        Check("items lost", sum(one.entries.lost({0: one.expected}) for one in turns), "==", 0),
        Check("items duplicated", sum(one.duplicated() for one in entries), "==", 0),
        Check("items reordered in a channel", sum(one.reordered_by_mark() for one in entries), "==", 0),
    ]
    figures = {"turns_up_ms": ups, "turns_down_ms": downs, "items": sum(map(len, entries))}
    return Result("switch", figures, checks)
