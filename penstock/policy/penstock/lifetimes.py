"""How long envelopes collect items: longer where shipping is dear, shorter where a bound needs it.

An envelope costs each end about `envelope_ms` (parameters.py), however many items are in it. Where a task is
busy and an item takes it w ms, n items have to share an envelope so that it is only a tenth of the work:

    n = envelope_ms / (0.1 w)        L = n / r        r: items per second of a channel

but at most a tenth of the bound, and three tenths for all streams of a constraint. Where w is long, n is
below 2 and lifetimes stay as they are. A constraint that no number of replicas keeps gets half its lifetimes.
"""

from collections.abc import Collection

from penstock.policy.decision import Reason
from penstock.policy.measured import finite, utilization
from penstock.policy.penstock.counted import Counted
from penstock.stats.snapshot import ConstraintSpec, Snapshot, StreamStats

RULE = "lifetime"
_OF_WORK = 0.1
_OF_BOUND, _OF_BOUND_IN_ALL = 0.1, 0.3
_BUSY = 0.3
_SHORTEST_MS = 0.5
_FEW = 2.0
_MUCH = 1.25


def lifetimes(
    snapshot: Snapshot, counts: Counted, envelope_ms: float, infeasible: Collection[str]
) -> tuple[dict[str, float], list[Reason]]:
    """Those that change, and why."""
    found: dict[str, float] = {}
    reasons = []
    for constraint in snapshot.constraints:
        for name in constraint.streams():
            stream = snapshot.stream(name)
            now_ms = finite(stream.batch_lifetime_ms)
            if now_ms is None or stream.wiring == "forward":
                continue
            if constraint.name in infeasible:
                after_ms = now_ms / 2.0 if now_ms / 2.0 >= _SHORTEST_MS else 0.0
                why = f"{constraint.name} cannot be kept by replicas: items of {name} wait less for others"
            else:
                items = _items(snapshot, counts, stream, envelope_ms)
                after_ms = _lifetime_ms(snapshot, constraint, stream, items)
                why = f"shipping is much of the work at {name}: about {items:.0f} items share an envelope"
                if after_ms <= _MUCH * now_ms:
                    continue
            if after_ms != now_ms:
                found[name] = after_ms
                reasons.append(
                    Reason(
                        rule=RULE,
                        constraint=constraint.name,
                        stream=name,
                        before=now_ms,
                        after=after_ms,
                        why=why,
                    )
                )
    return found, reasons


def _items(snapshot: Snapshot, counts: Counted, stream: StreamStats, envelope_ms: float) -> float:
    """n, for the end that needs more."""
    needed = 0.0
    for end in (stream.sender, stream.receiver):
        work_s = counts.service_s(end)
        if work_s and (utilization(snapshot.tasks[end]) or 0.0) >= _BUSY:
            needed = max(needed, envelope_ms / (_OF_WORK * 1000.0 * work_s))
    return needed


def _lifetime_ms(snapshot: Snapshot, constraint: ConstraintSpec, stream: StreamStats, items: float) -> float:
    sent = finite(stream.emitted_total)
    if items < _FEW or not sent:
        return 0.0
    channels = snapshot.tasks[stream.sender].parallelism * snapshot.tasks[stream.receiver].parallelism
    share = min(_OF_BOUND, _OF_BOUND_IN_ALL / len(constraint.streams()))
    return min(share * constraint.latency_ms, 1000.0 * items * channels * snapshot.interval_s / sent)
