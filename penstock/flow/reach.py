"""Bounds that nobody can keep, because the way between the tasks alone takes longer.

    least latency of a sequence = HOP_MS * layers that its streams cross

An item that goes from one layer to the next passes the shuffle between two processes. On an idle machine with
two cores that took 0.15 ms at least (`penstock bench latency`), so less than 0.1 ms is not to be had. What
stays in its partition costs nothing once its tasks are chained. Service times and queues come on top; they
are known only when the flow runs.
"""

from typing import Final

from penstock.durations import format_ms
from penstock.flow.graph import Constraint
from penstock.flow.layers import Layout

HOP_MS: Final = 0.1


def hops(layout: Layout, constraint: Constraint) -> int:
    """How many layers the items of a constraint cross."""
    names = {stream.name for stream in layout.graph.streams}
    streams = [layout.graph.stream(name) for name in constraint.sequence if name in names]
    return sum(
        layout.unit_of(stream.receiver).layer - layout.unit_of(stream.sender).layer for stream in streams
    )


def out_of_reach(layout: Layout, constraint: Constraint) -> str | None:
    """Why a bound cannot be kept whatever is decided, or None."""
    count = hops(layout, constraint)
    least_ms = count * HOP_MS
    if constraint.latency_ms >= least_ms:
        return None
    bound = format_ms(constraint.latency_ms)
    crossed = "hop takes" if count == 1 else f"{count} hops take"
    return (
        f"constraint {constraint.name} cannot be kept: its {crossed} {format_ms(least_ms)} on an idle"
        f" machine, more than its bound of {bound}; allow more, or join its tasks with forward streams"
    )


def lasting_batches(layout: Layout, constraint: Constraint) -> str | None:
    """Why a bound will hardly be kept if batch lifetimes stay as declared, or None.

    Items that come evenly wait for half a lifetime or more in every stream, unless envelopes fill up earlier.
    """
    streams = [stream for stream in layout.graph.streams if stream.name in constraint.sequence]
    waits_ms = sum(stream.batch_lifetime_ms for stream in streams) / 2
    if waits_ms <= constraint.latency_ms:
        return None
    return (
        f"constraint {constraint.name} will hardly be kept: items wait for about {format_ms(waits_ms)} in"
        f" envelopes, more than its bound of {format_ms(constraint.latency_ms)}, and nothing shortens their"
        " batch lifetimes; declare shorter ones"
    )
