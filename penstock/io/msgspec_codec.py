"""A codec for items of one type, without pickle: msgspec's MessagePack, checked where it is read."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.io.importable import refuse_unimportable


@dataclass(frozen=True)
class MsgspecCodec:
    """Codes all items of an envelope at once; only the type travels to the workers."""

    type: Any
    _encoder: msgspec.msgpack.Encoder = field(init=False, repr=False, compare=False)
    _one: msgspec.msgpack.Decoder[Any] = field(init=False, repr=False, compare=False)
    _many: msgspec.msgpack.Decoder[list[Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_encoder", msgspec.msgpack.Encoder())
        object.__setattr__(self, "_one", msgspec.msgpack.Decoder(self.type))
        object.__setattr__(self, "_many", msgspec.msgpack.Decoder(list[self.type]))  # type: ignore[name-defined]

    def __reduce__(self) -> Any:
        return msgspec_codec, (self.type,)

    @property
    def name(self) -> str:
        """For people."""
        return f"msgspec of {getattr(self.type, '__name__', self.type)}"

    def dumps(self, item: Any) -> bytes:
        return self._encoder.encode(item)

    def loads(self, data: bytes) -> Any:
        return self._one.decode(data)

    def dumps_many(self, items: list[Any]) -> bytes:
        if isinstance(self.type, type) and issubclass(self.type, msgspec.Struct):
            self._refuse_others(items)
        return self._encoder.encode(items)

    def loads_many(self, data: memoryview) -> list[Any]:
        return self._many.decode(data)

    def split(self, data: memoryview) -> list[bytes]:
        return [bytes(part) for part in msgspec.msgpack.decode(data, type=list[msgspec.Raw])]

    def _refuse_others(self, items: list[Any]) -> None:
        """A struct of another class would be coded, and then be read as one of this class, or not at all."""
        others = {*map(type, items)} - {self.type}
        if others:
            found = next(item for item in items if type(item) in others)
            raise TypeError(f"it takes {self.type.__name__}, not {type(found).__name__}: {found!r:.80}")


def msgspec_codec(type: Any) -> MsgspecCodec:  # noqa: A002 - the user's word
    """A codec for a stream whose items are of one type that msgspec knows, a Struct at best.

    >>> class Reading(msgspec.Struct):
    ...     sensor: int
    ...     value: float
    >>> codec = msgspec_codec(Reading)
    >>> codec.loads(codec.dumps(Reading(3, 0.5)))
    Reading(sensor=3, value=0.5)
    """
    return MsgspecCodec(type)


def check_structs(graph: Graph) -> None:
    """Refuse a codec whose struct other processes could not import."""
    for stream in graph.streams:
        if isinstance(stream.codec, MsgspecCodec):
            where = f'the codec of stream "{stream.name}" of flow "{graph.name}"'
            refuse_unimportable(stream.codec.type, where, FlowError)
