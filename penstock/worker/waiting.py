"""Items that wait for the state of their keys, which comes from another replica; all others go on."""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final, NamedTuple

from penstock.flow.graph import Stream
from penstock.wire.codecs import Unread
from penstock.wire.envelope import Envelope, picked
from penstock.wire.keys import key_group

LIMIT_BYTES: Final = 8 << 20
"""When more waits than this, sources are to wait, too."""


class Held(NamedTuple):
    """Of an envelope the items that wait, and when it came."""

    envelope: Envelope
    arrived_ns: int


class Waiting:
    """Before the first task of a worker; `streams` are those of the flow."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._keys: list[Callable[[Any], Hashable] | None] = [
            stream.key if stream.wiring == "key" and callable(stream.key) else None for stream in streams
        ]
        self._groups: Collection[int] = ()
        self._held: list[Held] = []
        self._bytes = 0

    def begin(self, groups: Collection[int]) -> None:
        """Items of these groups wait from now on."""
        self._groups = groups

    def end(self) -> list[Held]:
        """Nothing waits any longer; what did, in the order in which it came."""
        held, self._held = self._held, []
        self._groups = ()
        self._bytes = 0
        return held

    def __bool__(self) -> bool:
        """Whether any item has to wait."""
        return bool(self._groups)

    @property
    def is_full(self) -> bool:
        """Whether too much waits."""
        return self._bytes > LIMIT_BYTES

    def sift(self, envelope: Envelope, arrived_ns: int, size: int) -> Envelope | None:
        """The items that need not wait, None if all have to; `size` is that of the envelope in bytes."""
        key_of = self._keys[envelope.stream]
        if key_of is None:
            return envelope
        waits = [self._waits(key_of, item) for item in envelope.items]
        held = [place for place, has_to in enumerate(waits) if has_to]
        if not held:
            return envelope
        self._bytes += size * len(held) // len(waits)
        if len(held) == len(waits):
            self._held.append(Held(envelope, arrived_ns))
            return None
        self._held.append(Held(picked(envelope, held), arrived_ns))
        return picked(envelope, [place for place, has_to in enumerate(waits) if not has_to])

    def _waits(self, key_of: Callable[[Any], Hashable], item: Any) -> bool:
        """One without a key, which its codec could not read or whose key raises, fails as it would anyway."""
        if type(item) is Unread:
            return False
        try:
            return key_group(key_of(item)) in self._groups
        except Exception:  # noqa: BLE001 - users' code may raise anything
            return False
