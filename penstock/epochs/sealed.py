"""Files that tell whether they are whole: a line with kind, version, length, checksum, then the content."""

from hashlib import blake2b

from penstock.epochs.errors import LogError

_DIGEST_BYTES = 16


def checksum(content: bytes) -> str:
    """What an entry remembers of a file."""
    return blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def seal(kind: str, version: int, content: bytes) -> bytes:
    """The bytes of a file.

    >>> unseal("entry", 1, seal("entry", 1, b"content"), "log/1")
    b'content'
    """
    return f"penstock-{kind} {version} {len(content)} {checksum(content)}\n".encode() + content


def unseal(kind: str, version: int, data: bytes, file: str) -> bytes:
    """The content of a file; a `LogError` that names it if it is not what was sealed."""
    line, end, content = data.partition(b"\n")
    words = line.split(b" ")
    if not end or len(words) != 4 or words[0] != f"penstock-{kind}".encode():
        raise LogError(f"{file} is not a file of the kind {kind}, or its beginning is damaged")
    if words[1] != str(version).encode():
        found = words[1].decode(errors="replace")
        raise LogError(f"{file} has version {found} of its format; this version of Penstock reads {version}")
    if words[2] != str(len(content)).encode():
        raise LogError(f"{file} is cut off: {len(content)} bytes of {words[2].decode(errors='replace')}")
    if words[3] != checksum(content).encode():
        raise LogError(f"{file} is damaged: its checksum does not fit")
    return content
