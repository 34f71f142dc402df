"""How the items of a stream become bytes: a codec that Penstock has, or any object of the user's."""

from typing import Any, Final, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from penstock.flow.errors import FlowError

KnownCodec = Literal["pickle", "bytes", "arrow"]
KNOWN_CODECS: Final[tuple[KnownCodec, ...]] = get_args(KnownCodec)


@runtime_checkable
class ItemCodec(Protocol):
    """A codec of the user's: `json` is one. It is pickled to the workers."""

    def dumps(self, item: Any, /) -> bytes | str:
        """The bytes of an item; a string becomes UTF-8."""

    def loads(self, data: bytes, /) -> Any:
        """The item of these bytes."""


@runtime_checkable
class ManyCodec(ItemCodec, Protocol):
    """A codec that codes all items of an envelope at once, because that is faster."""

    def dumps_many(self, items: list[Any], /) -> bytes:
        """The bytes of all items together."""

    def loads_many(self, data: memoryview, /) -> list[Any]:
        """The items of these bytes, which are valid only during the call."""

    def split(self, data: memoryview, /) -> list[bytes]:
        """The bytes of each item, as `loads` takes them: asked for when `loads_many` has raised."""


Codec: TypeAlias = KnownCodec | ItemCodec


def checked_codec(codec: Any, where: str) -> Codec:
    """Refuse what is no codec."""
    if isinstance(codec, str) and codec in KNOWN_CODECS:
        return codec
    if not isinstance(codec, str | type) and isinstance(codec, ItemCodec):
        return codec
    known = ", ".join(map(repr, KNOWN_CODECS))
    raise FlowError(
        f"{where}: codec must be one of {known}, or an object with dumps(item) and loads(data), not {codec!r}"
    )


def codec_name(codec: Codec) -> str:
    """What a codec is called in words for people.

    >>> import json
    >>> codec_name("bytes"), codec_name(json)
    ('bytes', 'json')
    """
    if isinstance(codec, str):
        return codec
    name = getattr(codec, "name", None) or getattr(codec, "__name__", None)
    return name if isinstance(name, str) else type(codec).__name__
