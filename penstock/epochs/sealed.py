"""Files that tell whether they are whole: a line with kind, version, length, checksum, then the content."""

from hashlib import blake2b

from penstock.epochs.errors import LogError

_DIGEST_BYTES = 16


def checksum(content: bytes | memoryview) -> str:
    """What an entry remembers of a file."""
    return blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def seal(kind: str, version: int, content: bytes, digest: str | None = None) -> bytes:
    """The bytes of a file; `digest` is the checksum of its content, if that is known.

    >>> unseal("entry", 1, seal("entry", 1, b"content"), "log/1")
    b'content'
    """
    digest = checksum(content) if digest is None else digest
    return b"".join((f"penstock-{kind} {version} {len(content)} {digest}\n".encode(), content))


def unseal(kind: str, version: int, data: bytes, file: str) -> bytes:
    """The content of a file; a `LogError` that names it if it is not what was sealed."""
    return bytes(unsealed(kind, version, data, file)[0])


def unsealed(kind: str, version: int, data: bytes, file: str) -> tuple[memoryview, str]:
    """The same without a copy, and its checksum."""
    end = data.find(b"\n")
    words, content = data[: max(end, 0)].split(b" "), memoryview(data)[end + 1 :]
    if end < 0 or len(words) != 4 or words[0] != f"penstock-{kind}".encode():
        raise LogError(f"{file} is not a file of the kind {kind}, or its beginning is damaged")
    if words[1] != str(version).encode():
        found = words[1].decode(errors="replace")
        raise LogError(f"{file} has version {found} of its format; this version of Penstock reads {version}")
    if words[2] != str(len(content)).encode():
        raise LogError(f"{file} is cut off: {len(content)} bytes of {words[2].decode(errors='replace')}")
    if words[3] != (digest := checksum(content)).encode():
        raise LogError(f"{file} is damaged: its checksum does not fit")
    return content, digest
