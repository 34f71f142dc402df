"""A fair sample of two kinds of items, of which one is sampled by a share and the other in full.

What a timer sends is little, and all of it is timed; items of sources are timed by a share. A task that reads
both would look as if it did hardly anything but what came of timers.
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def fair_share(sampled: Sequence[T], in_full: Sequence[T], processed: int) -> list[T]:
    """Of those known in full, keep the share of the others that was sampled; `processed` counts both kinds.

        kept = |in full| * |sampled| / (processed - |in full|), evenly spread

    If no item of the other kind was sampled, there is no share to go by, and all are kept.
    """
    others = max(len(sampled), processed - len(in_full))
    kept = round(len(in_full) * len(sampled) / others) if sampled else len(in_full)
    return [*sampled, *(in_full[place * len(in_full) // kept] for place in range(kept))]
