"""Back-pressure: a sender may not emit faster than full queues downstream let it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.sim.stage import Stage
    from penstock.sim.stream import Stream

# A queue begins to hold its senders up when it is this full.
_FULL = 0.5


def pace_s(stream: Stream, receiver: Stage, senders: int, per_item: float, duration_s: float) -> float:
    """Shortest time between two items of one sender during the next step; 0 when nothing holds it up.

    The receivers can take what they have room for plus what they will finish, which is what they finished in the
    step before. Senders that deal items in turn are held up by the fullest receiver.
    """
    limit = receiver.model.queue_items
    if limit is None or not receiver.waiting.size or receiver.waiting.max() <= _FULL * limit:
        return 0.0
    room = (limit - receiver.waiting).clip(min=0) + receiver.served_last_step
    share = stream.shares()
    admitted = float((room / share).min())
    if admitted <= 0.0:
        return duration_s
    pace = senders * duration_s * per_item / admitted
    return pace if math.isfinite(pace) else duration_s
