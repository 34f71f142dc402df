"""How long timed items took, by the group of their key: a few in a second, so one that is not timed costs
nothing."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from penstock.flow.graph import Stream
from penstock.stats.key_load import GroupTime
from penstock.wire.keys import key_group


class GroupTimes:
    """Of one task; `streams` are those of the flow. Another thread takes what the task's thread adds."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._keys: list[Callable[[Any], Hashable] | None] = [
            stream.key if stream.wiring == "key" and callable(stream.key) else None for stream in streams
        ]
        self._took: list[tuple[int, int]] = []

    def took(self, stream: int, item: Any, own_ns: int) -> None:
        """An item that came by a stream; one without a key that can be told is left out."""
        key_of = self._keys[stream]
        if key_of is None:
            return
        try:
            group = key_group(key_of(item))
        except Exception:  # noqa: BLE001 - users' code may raise anything, and the task has been at it
            return
        self._took.append((group, own_ns))

    def take(self) -> dict[int, GroupTime]:
        """Since the last call."""
        took, self._took = self._took, []
        found: dict[int, GroupTime] = {}
        for group, own_ns in took:
            known = found.get(group, GroupTime())
            found[group] = GroupTime(known.items + 1, known.took_ms + own_ns * 1e-6)
        return found
