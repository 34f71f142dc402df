"""DS2 on word count with rate-limited stages: one step to the optimum, whatever the start, and then rest.

Dhalion's ratios (a counter takes ten times as many words as a splitter takes sentences, 20 words a sentence)
at half the size of Heron's run: 5 splitters and 10 counters are just enough. Replicas are faster than nominal
by what handing over an item may take: on slow cores that was more than the 4 % of the application. There are
few enough of them for 8 % to leave the optimum where it is.
"""

import itertools
import math
import time
from dataclasses import dataclass
from typing import Any

import penstock
from penstock.apps.primetest import drop
from penstock.apps.wordcount import WORDS_PER_SENTENCE, wordcount_flow
from penstock.bench.baselines import bench_session
from penstock.bench.control_settings import INTERVAL_S
from penstock.bench.harness import Check, Effort
from penstock.control.loop import Cycle

SENTENCES_PER_S = 50.0
ROOM = 1.08
SPLITTER_PER_S = SENTENCES_PER_S / 5 * ROOM
COUNTER_PER_S = SENTENCES_PER_S * WORDS_PER_SENTENCE / 10 * ROOM
TASKS = ("splitter", "counter")
OPTIMUM = (
    math.ceil(SENTENCES_PER_S / SPLITTER_PER_S),
    math.ceil(SENTENCES_PER_S * WORDS_PER_SENTENCE / COUNTER_PER_S),
)
STARTS = {"under-provisioned": (1, 1), "over-provisioned": (10, 20)}
MOST = (12, 24)
SETTLE_S, REST_S = 36.0, 60.0


@dataclass(frozen=True, slots=True)
class Turn:
    """What the controller saw."""

    cycles: list[Cycle]

    def configurations(self) -> list[tuple[int, ...]]:
        """The replicas of both stages whenever they changed, the first included."""
        seen = [_replicas(cycle) for cycle in self.cycles]
        return [replicas for replicas, _ in itertools.groupby(seen)]

    def rest_s(self) -> float:
        """How long the last configuration lasted."""
        last = _replicas(self.cycles[-1])
        same = itertools.takewhile(lambda cycle: _replicas(cycle) == last, reversed(self.cycles))
        return sum(cycle.snapshot.interval_s for cycle in same)


def _replicas(cycle: Cycle) -> tuple[int, ...]:
    return tuple(cycle.snapshot.tasks[task].parallelism for task in TASKS)


def wordcount(effort: Effort) -> dict[str, Turn]:
    """One run from each start."""
    seconds = 40.0 if effort is Effort.QUICK else SETTLE_S + REST_S
    bench_session(sum(MOST) + 3)
    return {name: one_run(first, seconds) for name, first in STARTS.items()}


def one_run(first: tuple[int, int], seconds: float) -> Turn:
    """DS2 from that many splitters and counters on."""
    splitters, counters = (
        penstock.elastic(1, most, initial=begin, pool=most) for begin, most in zip(first, MOST, strict=True)
    )
    flow = wordcount_flow(
        SENTENCES_PER_S,
        drop,
        splitters=splitters,
        counters=counters,
        splitter_per_s=SPLITTER_PER_S,
        counter_per_s=COUNTER_PER_S,
    )
    job = penstock.run(flow, policy="ds2", interval=INTERVAL_S)
    time.sleep(seconds)
    job.stop()
    assert job.control is not None, "ds2 decides"
    return Turn(job.control.cycles())


def summarise(turns: dict[str, Turn]) -> tuple[dict[str, Any], list[Check]]:
    """Steps, where they led, and how long it stayed there."""
    figures = {
        name: {"configurations": turn.configurations(), "rest_s": turn.rest_s()}
        for name, turn in turns.items()
    }
    checks = []
    for name, turn in turns.items():
        path = turn.configurations()
        beyond = max(abs(now - best) for now, best in zip(path[-1], OPTIMUM, strict=True))
        checks += [
            Check(f"wordcount {name}: steps", len(path) - 1, "==", 1),
            Check(f"wordcount {name}: replicas beside the optimum", beyond, "==", 0),
            Check(f"wordcount {name}: seconds without a change", turn.rest_s(), ">=", REST_S),
        ]
    return figures, checks
