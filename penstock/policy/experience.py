"""What was measured before with other numbers of replicas counts for more than what a model says of them.

A queue with p replicas gets no shorter when more comes. So the wait that was measured with p replicas at a
rate as high as now or higher is a bound on the wait they would bring now, the closer the lower that rate:

    W(p) <= w(p, rate'),   the lowest rate' >= rate

Three things follow. Replicas may go when fewer have been enough for what comes now; they need not stay for
as long as replicas do that only a model finds superfluous; and no replicas are added for a wait that is new
while replicas and rate are not, unless it is there for a second interval.

Kingman's formula scales a wait with 1 / (p - b). Where items wait for those of the same envelope, and
envelopes come at regular times, it grows with 1 / p only, and the formula keeps replicas that nobody needs.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock.policy.decision import Decision
from penstock.policy.measured import finite, queue_wait_ms
from penstock.stats.snapshot import Snapshot

SAME_RATE = 0.05
"""Rates that differ by less, as a share, are taken for the same."""

RULE = "experience"
"""The rule of reasons that say: so many replicas have been enough."""


class Experience(msgspec.Struct, frozen=True):
    """A task with so many replicas: items per second for all of them together, and how long they waited."""

    replicas: int
    rate_per_s: float
    wait_ms: float


Experiences = Mapping[str, tuple[Experience, ...]]
"""By task, the latest last."""


def experience(snapshot: Snapshot, name: str) -> Experience | None:
    """What this interval shows of a task; None if something was not measured."""
    task = snapshot.tasks[name]
    gap_ms, wait_ms = finite(task.interarrival_ms), queue_wait_ms(snapshot, name)
    if not gap_ms or wait_ms is None:
        return None
    return Experience(task.parallelism, 1000.0 * task.parallelism / gap_ms, wait_ms)


def remembered(before: Experiences, snapshot: Snapshot, most: int) -> dict[str, tuple[Experience, ...]]:
    """What this snapshot adds takes the place of what was known of the same replicas at the same rate."""
    known = dict(before)
    for name in snapshot.elastic_tasks(sources=False) if most else ():
        now = experience(snapshot, name)
        if now is not None:
            others = [one for one in known.get(name, ()) if not _same(one, now)]
            known[name] = (*others, now)[-most:]
    return known


def closest(known: Sequence[Experience], replicas: int, rate_per_s: float) -> Experience | None:
    """With so many replicas, at the lowest rate that is no lower than this one."""
    least_per_s = rate_per_s * (1 - SAME_RATE)
    fitting = [one for one in known if one.replicas == replicas and one.rate_per_s >= least_per_s]
    return min(fitting, key=lambda one: one.rate_per_s, default=None)


def fewest_enough(
    known: Sequence[Experience], replicas: Iterable[int], rate_per_s: float, wait_ms: float
) -> Experience | None:
    """The first of these numbers of replicas with which items did not wait longer at such a rate."""
    seen = (closest(known, count, rate_per_s) for count in replicas)
    return next((one for one in seen if one is not None and one.wait_ms <= wait_ms), None)


def shown_enough(decision: Decision, task: str, replicas: int) -> bool:
    """Whether a decision says that so many replicas of a task have been enough before."""
    return any((one.rule, one.task, one.after) == (RULE, task, replicas) for one in decision.reasons)


def is_hiccup(known: Sequence[Experience], now: Experience) -> bool:
    """Whether items wait more than twice as long as they did before with these replicas at this rate.

    That is not the load. If it lasts, it is what is known of these replicas by the next interval.
    """
    before = closest(known, now.replicas, now.rate_per_s)
    return before is not None and 2 * before.wait_ms < now.wait_ms


def _same(one: Experience, other: Experience) -> bool:
    apart_per_s = abs(one.rate_per_s - other.rate_per_s)
    return one.replicas == other.replicas and apart_per_s <= SAME_RATE * other.rate_per_s
