"""Back-pressure: a sender may not emit faster than full queues downstream let it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penstock.sim.stage import Stage
    from penstock.sim.stream import Stream

# A queue begins to hold its senders up when it is this full.
_FULL = 0.5
# However full it is, its senders keep going at this share of what it can take, so that nothing ever stands
# still.
_TRICKLE = 0.5


def pace_s(stream: Stream, receiver: Stage, senders: int, per_item: float, duration_s: float) -> float:
    """Shortest time between two items of one sender during the next step; 0 when nothing holds it up.

    The receivers can take what they have room for plus what they can finish meanwhile. Senders that deal
    items in turn are held up by the fullest receiver. Receivers are asked before their senders, so that a
    receiver that is held up itself passes that on.
    """
    limit = receiver.model.queue_items
    if limit is None or receiver.waiting.max() <= _FULL * limit:
        return 0.0
    work_s = np.maximum(receiver.mean_work_s * receiver.slowdown, receiver.pace_s)
    finishing = duration_s / np.maximum(work_s, 1e-12)
    taken = np.maximum(_TRICKLE * finishing, limit - receiver.waiting + finishing)
    admitted = float((taken / stream.shares()).min())
    return senders * duration_s * per_item / admitted
